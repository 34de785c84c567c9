#include "daemon/ctl/healthy.h"

#include <string.h>

#include "tests/unit/suite.h"

static char text[HEALTHY_TEXT_SIZE];

static bool judge(const char *json)
{
	return healthy_judge(json, strlen(json), text);
}

#define LACKING(name, breaks)                                                            \
	"{\"what\": \"no " name "\", \"effect\": \"it stays\", \"remedy\": \"add it\", " \
	"\"breaks_promise\": " breaks "}"
#define RUNS(degraded) "{\"daemon\": {\"capture_pid\": 7, \"degraded\": " degraded "}}"

TEST(a_daemon_that_samples_is_healthy)
{
	ck_assert(judge(RUNS("[]")));
	ck_assert_str_eq(text, "");
}

TEST(who_may_not_see_what_it_lacks_is_told)
{
	ck_assert(judge(RUNS("null")));
	HAS(text, "this user may not see");
	ck_assert(judge("{\"daemon\": {\"capture_pid\": 7}}"));
	HAS(text, "this user may not see");
	ck_assert(!judge("{\"daemon\": {\"capture_pid\": 0, \"degraded\": null}}"));
	HAS(text, "sentry-profd-capture does not run");
}

TEST(without_capture_it_is_not)
{
	ck_assert(!judge("{\"daemon\": {\"capture_pid\": 0, \"degraded\": []}}"));
	HAS(text, "sentry-profd-capture does not run");
}

TEST(only_broken_promises_count)
{
	ck_assert(judge(RUNS("[" LACKING("CAP_SYS_NICE", "false") "]")));
	ck_assert(!judge(RUNS("[" LACKING("CAP_SYS_NICE", "false") ", " LACKING(
		"CAP_KILL", "true") ", " LACKING("pidfd_getfd(2)", "true") "]")));
	ck_assert_str_eq(text, "no CAP_KILL: it stays (add it)");
}

TEST(what_is_no_status_is_a_fault)
{
	ck_assert(!judge(""));
	HAS(text, "no valid status");
	ck_assert(!judge("{\"daemon\": {}}"));
	ck_assert(!judge("{\"daemon\": {\"capture_pid\": \"7\"}}"));
	ck_assert(!judge("[]"));
	/* Members of other types. */
	ck_assert(!judge(RUNS("[{\"breaks_promise\": true, \"what\": 5}]")));
	ck_assert_str_eq(text, "-: - (-)");
}
