#include "daemon/ctl/healthy.h"

#include <string.h>

#include "tests/unit/suite.h"

static char fault[HEALTHY_FAULT_SIZE];

static bool judge(const char *json)
{
	return healthy_judge(json, strlen(json), fault);
}

#define LACKING(name, breaks)                                                            \
	"{\"what\": \"no " name "\", \"effect\": \"it stays\", \"remedy\": \"add it\", " \
	"\"breaks_promise\": " breaks "}"
#define RUNS(degraded) "{\"daemon\": {\"capture_pid\": 7, \"degraded\": " degraded "}}"

TEST(a_daemon_that_samples_is_healthy)
{
	ck_assert(judge(RUNS("[]")));
	ck_assert_str_eq(fault, "");
	/* For a user who may not see it. */
	ck_assert(judge(RUNS("null")));
	ck_assert(judge("{\"daemon\": {\"capture_pid\": 7}}"));
}

TEST(without_capture_it_is_not)
{
	ck_assert(!judge("{\"daemon\": {\"capture_pid\": 0, \"degraded\": []}}"));
	HAS(fault, "sentry-profd-capture does not run");
}

TEST(only_broken_promises_count)
{
	ck_assert(judge(RUNS("[" LACKING("CAP_SYS_NICE", "false") "]")));
	ck_assert(!judge(RUNS("[" LACKING("CAP_SYS_NICE", "false") ", " LACKING(
		"CAP_KILL", "true") ", " LACKING("pidfd_getfd(2)", "true") "]")));
	ck_assert_str_eq(fault, "no CAP_KILL: it stays (add it)");
}

TEST(what_is_no_status_is_a_fault)
{
	ck_assert(!judge(""));
	HAS(fault, "no valid status");
	ck_assert(!judge("{\"daemon\": {}}"));
	ck_assert(!judge("{\"daemon\": {\"capture_pid\": \"7\"}}"));
	ck_assert(!judge("[]"));
	/* Members of other types. */
	ck_assert(!judge(RUNS("[{\"breaks_promise\": true, \"what\": 5}]")));
	ck_assert_str_eq(fault, "-: - (-)");
}
