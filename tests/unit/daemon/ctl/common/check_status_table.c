#include "daemon/ctl/common/status_table.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/suite.h"

static char *text;
static size_t length;

static size_t width;

static int print(const char *json)
{
	FILE *out;
	int r;

	free(text);
	text = NULL;
	out = open_memstream(&text, &length);
	ck_assert_ptr_nonnull(out);
	r = status_table_print(json, strlen(json), width, out);
	OK(fclose(out));
	return r;
}

static void tear_down(void)
{
	width = 0;
	free(text);
	text = NULL;
}

#define DAEMON                                                       \
	"\"daemon\": {\"version\": \"1.2.3\", \"pid\": 7, "          \
	"\"uptime_s\": 60.4, \"profiling\": 1, \"rate_limited_s\": " \
	"0, \"spool\": {\"waiting\": 3, \"bytes\": 1234567}}"
#define ALL                                              \
	"{\"name\": \"redis\", \"pid\": 42, \"state\": " \
	"\"profiling\", \"session_sampled\": true, "     \
	"\"lifecycle\": \"manual\", \"rate_hz\": 101, "  \
	"\"profiler_id\": \"0\", \"threads\": 4, "       \
	"\"samples_taken\": 12345, \"missed\": 6, "      \
	"\"pause_us_p99\": 34.56, \"chunks_sent\": 2, "  \
	"\"bytes_sent\": 999, \"last_error\": \"no answer\"}"

FIXTURE(NULL, tear_down)

TEST(targets_are_rows_of_a_table)
{
	OK(print("{" DAEMON ", \"targets\": [" ALL "]}"));
	ck_assert_str_eq(text, "sentry-profd 1.2.3, pid 7, up 60 s, 1 target, 1 profiled, "
			       "3 chunks (1.23 MB) in the spool\n"
			       "NAME   PID  STATE      SESSION  LIFECYCLE   HZ  THREADS  "
			       "SAMPLES  MISSED  PAUSE P99  CHUNKS  BYTES  BY  LAST ERROR\n"
			       "redis   42  profiling  sampled  manual     101        4  "
			       "  12345       6      35 us       2  999 B   -  no answer\n");
}

#define ERROR50 "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2: no room"
#define FAILED                                                         \
	"{\"name\": \"a-section-with-a-name-as-long-as-may-be-40x\", " \
	"\"pid\": 1, \"last_error\": \"" ERROR50 " " ERROR50 "\"}"

TEST(long_texts_are_not_truncated)
{
	OK(print("{" DAEMON ", \"targets\": [" FAILED "]}"));
	HAS(text, "\na-section-with-a-name-as-long-as-may-be-40x ");
	HAS(text, "  " ERROR50 " " ERROR50 "\n");
	HAS(text, "  LAST ERROR\n");
}

/* The row of ALL has 104 characters before its error. */
TEST(a_last_error_that_exceeds_the_terminal_has_its_own_line)
{
	width = 104 + strlen("LAST ERROR");
	OK(print("{" DAEMON ", \"targets\": [" ALL "]}"));
	HAS(text, "  999 B   -  no answer\n");
	HAS(text, "  BYTES  BY  LAST ERROR\n");
	width--;
	OK(print("{" DAEMON ", \"targets\": [" ALL "]}"));
	HAS(text, "  999 B   -  no answer\n");
	HAS(text, "  BYTES  BY  \n  LAST ERROR\n");
}

TEST(missing_values_are_dashes)
{
	OK(print("{" DAEMON ", \"targets\": [{\"name\": \"x\", "
		 "\"pid\": 1, \"threads\": null, \"state\": 5, "
		 "\"new\": 3}, {}]}"));
	HAS(text, "\nx       1  -      -  ");
	HAS(text, "\n-       -  -      -  ");
	OK(print("{\"daemon\": {}, \"targets\": []}"));
	LACKS(text, "NAME");
}

#define LIMITED(servers) "{\"daemon\": {\"rate_limited_s\": 9.6" servers "}, \"targets\": []}"

TEST(rate_limits_of_servers)
{
	OK(print(LIMITED("")));
	HAS(text, "a server accepts nothing for 10 s");
	OK(print(LIMITED(", \"servers\": null")));
	HAS(text, "a server accepts nothing for 10 s");
	/* A line for each server with a limit, with the name of the server. */
	OK(print(LIMITED(", \"servers\": [{\"server\": \"a:443/1\", "
			 "\"rate_limited_s\": 3.2}, {\"server\": "
			 "\"b:443/1\", \"rate_limited_s\": 0}, "
			 "{\"server\": \"\\u001bc:443/1\", "
			 "\"rate_limited_s\": 9.6}]")));
	HAS(text, "\na:443/1 accepts nothing for 3 s (rate limit): "
		  "its targets are not sampled");
	HAS(text, "\n?c:443/1 accepts nothing for ");
	LACKS(text, "b:443/1");
	LACKS(text, "a server");
}

TEST(servers_that_refuse_the_dsn)
{
	OK(print("{\"daemon\": {\"servers\": [{\"server\": \"a:443/1\", \"refusal\": "
		 "{\"status\": 403, \"detail\": \"no\\u001b key\"}}, {\"server\": \"b:443/1\", "
		 "\"refusal\": {\"status\": 401, \"detail\": null}}, {\"server\": "
		 "\"c:443/1\", \"refusal\": null}]}, \"targets\": []}"));
	HAS(text, "\na:443/1 refuses the DSN (403, no? key): its targets are not sampled");
	HAS(text, "\nb:443/1 refuses the DSN (401): its");
	LACKS(text, "c:443/1");
}

TEST(degraded_states)
{
	OK(print("{\"daemon\": {\"degraded\": [{\"kind\": \"spool\", \"what\": \"no spool\", "
		 "\"since_s\": 7.2, \"reason\": \"it is \\u001baway\", \"effect\": \"chunks "
		 "wait\", \"remedy\": \"restart\"}, {\"what\": \"no CAP_KILL\", "
		 "\"since_s\": 60, \"reason\": null, \"effect\": \"it hangs\", \"remedy\": "
		 "\"add it\"}]}, \"targets\": []}"));
	HAS(text, "\ndegraded for 7 s: no spool, because it is ?away: chunks wait (restart)\n"
		  "degraded for 60 s: no CAP_KILL: it hangs (add it)\n");
	OK(print("{\"daemon\": {\"degraded\": null}, \"targets\": []}"));
	LACKS(text, "degraded");
}

TEST(rates_that_the_budget_has_lowered)
{
	OK(print("{\"daemon\": {\"profiling\": 40, "
		 "\"cpu_budget_percent\": 5, \"lowered\": "
		 "{\"targets\": 30, \"least_hz\": 11, "
		 "\"most_hz\": 17}}, \"targets\": []}"));
	HAS(text, "\nCPU budget 5 %: 30 of 40 targets are sampled at only 11 to 17 Hz\n");
	OK(print("{\"daemon\": {\"lowered\": {\"targets\": 0}}, "
		 "\"targets\": []}"));
	LACKS(text, "budget");
	OK(print("{\"daemon\": {\"cpu_budget_percent\": 5, \"lowered\": "
		 "{\"targets\": 0, \"not_sampled\": 3}}, \"targets\": []}"));
	HAS(text, "\nCPU budget 5 %: 3 targets that users have attached are not sampled\n");
	LACKS(text, "at only");
}

TEST(quota_of_a_daemon_without_real_time_priority)
{
	OK(print("{\"daemon\": {\"scheduler\": \"nice\", \"cpu_quota_percent\": 60}, "
		 "\"targets\": []}"));
	HAS(text,
	    "\nCPU quota: the daemon's control group has 60 % of a core: when that is used up, ");
	OK(print("{\"daemon\": {\"scheduler\": \"nice\", \"cpu_quota_percent\": 0}, "
		 "\"targets\": []}"));
	LACKS(text, "quota");
	OK(print("{\"daemon\": {\"scheduler\": \"fifo\", \"cpu_quota_percent\": 60}, "
		 "\"targets\": []}"));
	LACKS(text, "quota");
	OK(print("{\"daemon\": {\"scheduler\": null, \"cpu_quota_percent\": null}, "
		 "\"targets\": []}"));
	LACKS(text, "quota");
}

TEST(clocks_that_differ_from_a_server)
{
	OK(print("{\"daemon\": {\"servers\": [{\"server\": \"a:443/1\", "
		 "\"clock_ahead_s\": 90}, {\"server\": \"b:443/1\", "
		 "\"clock_ahead_s\": -6}, {\"server\": \"c:443/1\", "
		 "\"clock_ahead_s\": 5}]}, \"targets\": []}"));
	HAS(text, "the clock of this host is 90 s "
		  "behind that of a:443/1: profiles");
	HAS(text, "the clock of this host is 6 s "
		  "ahead of that of b:443/1: profiles");
	LACKS(text, "c:443/1");
}

TEST(control_characters_are_escaped)
{
	OK(print("{" DAEMON ", \"targets\": [{\"name\": "
		 "\"a\\u001b[2J\\u009bb\", \"last_error\": "
		 "\"x\\u0007y\\nz\"}]}"));
	ck_assert_ptr_null(strchr(text, '\033'));
	HAS(text, "a?[2J??b");
	HAS(text, "  x?y?z\n");
}

TEST(units_of_pauses)
{
	static const struct {
		const char *us, *shown;
	} v[] = {
		{"0", "  0 us"},      {"9.4", "  9 us"},    {"999.4", "999 us"},
		{"999.6", "1.00 ms"}, {"12345", "12.3 ms"}, {"99960", "100 ms"},
		{"1e9", "1000 s"},
	};
	char json[256];

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		(void)snprintf(json, sizeof(json),
			       "{\"daemon\": {}, \"targets\": "
			       "[{\"pause_us_p99\": %s}]}",
			       v[i].us);
		OK(print(json));
		ck_assert_msg(strstr(text, v[i].shown) != NULL, "%s: %s", v[i].us, text);
	}
}

TEST(files_in_quarantine)
{
	OK(print("{\"daemon\": {\"files_left_out\": [3, {\"file\": "
		 "\"/lib/a\\u001b.so\", \"uid\": 33, \"deaths\": 4}]}, "
		 "\"targets\": []}"));
	HAS(text, "\n/lib/a?.so is not read for uid "
		  "33: the unwinder died reading it 4 "
		  "times\n");
}

TEST(sections_with_a_defect_and_without_a_process)
{
	OK(print("{\"daemon\": {\"sections\": ["
		 "{\"name\": \"a\", \"instances\": 0, \"off\": true, \"defect\": \"bad\\u0007\"}, "
		 "{\"name\": \"b\", \"instances\": 1, \"off\": false, \"defect\": \"worse\"}, "
		 "{\"name\": \"c\", \"instances\": 0, \"empty_s\": 7, \"off\": false, "
		 "\"defect\": null}, "
		 "{\"name\": \"d\", \"instances\": 1, \"off\": false, \"defect\": null}]}, "
		 "\"targets\": []}"));
	HAS(text, "[target \"a\"] is off: bad?\n"
		  "[target \"b\"] keeps its former settings: worse\n"
		  "[target \"c\"] has matched no process for 7 s\n");
	LACKS(text, "[target \"d\"]");
}

TEST(text_that_is_not_a_status)
{
	ck_assert_int_eq(print(""), -EPROTO);
	ck_assert_int_eq(print("[]"), -EPROTO);
	ck_assert_int_eq(print("{\"daemon\": {}}"), -EPROTO);
	ck_assert_int_eq(print("{\"targets\": []}"), -EPROTO);
	ck_assert_int_eq(print("{" DAEMON ", \"targets\": ["), -EPROTO);
	ck_assert_uint_eq(length, 0);
}
