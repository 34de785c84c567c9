#include "daemon/ctl/top/top_targets.h"

#include <string.h>

#include "tests/unit/suite.h"

static struct top_targets t;

static void tear_down(void)
{
	top_targets_fini(&t);
}

#define TARGET(name, pid, samples, pause)                                    \
	"{\"name\":\"" name "\",\"pid\":" pid                                \
	",\"state\":\"profiling\",\"rate_hz\":101,\"threads\":2,"            \
	"\"samples_taken\":" samples ",\"missed\":4,\"pause_us_p99\":" pause \
	",\"bytes_sent\":2000}"
#define HIDDEN                                                             \
	"{\"name\":\"other\",\"pid\":9,\"state\":\"stopped\",\"rate_hz\":" \
	"101,\"threads\":null,\"samples_taken\":null}"

static int take(const char *json, uint64_t now_s, enum top_target_order order)
{
	return top_targets_take(&t, json, strlen(json), now_s * NS_PER_SEC, order);
}

static void check_order(enum top_target_order order, int32_t a, int32_t b)
{
	top_targets_sort(&t, order);
	ck_assert_int_eq(t.v[0].pid, a);
	ck_assert_int_eq(t.v[1].pid, b);
}

FIXTURE(NULL, tear_down)

TEST(rates_per_second)
{
	OK(take("{\"targets\":[" TARGET("a", "7", "100", "5.5") "," TARGET("b", "8", "500",
									   "4.0") "," HIDDEN "]}",
		10, TOP_BY_SAMPLES));
	ck_assert_uint_eq(t.n, 3);
	ck_assert_double_eq(t.v[0].samples_per_s, 0);
	OK(take("{\"targets\":[" TARGET("a", "7", "300", "5.5") "," TARGET("b", "8", "400",
									   "4.0") "," HIDDEN "]}",
		12, TOP_BY_SAMPLES));
	ck_assert_int_eq(t.v[0].pid, 7);
	ck_assert_double_eq(t.v[0].samples_per_s, 100);
	ck_assert_double_eq(t.v[0].missed_per_s, 0);
	ck_assert_double_eq(t.v[0].pause_us, 5.5);
	ck_assert(t.v[0].has_figures);
	ck_assert_str_eq(t.v[0].name, "a");
	/* Its total is lower than before, since the target was restarted. */
	ck_assert_int_eq(t.v[1].pid, 8);
	ck_assert_double_eq(t.v[1].samples_per_s, 0);
	ck_assert(!t.v[2].has_figures);
	check_order(TOP_BY_NAME, 7, 8);
	check_order(TOP_BY_PAUSE, 7, 8);
	check_order(TOP_BY_BYTES, 7, 8);
}

TEST(text_that_is_not_a_status)
{
	OK(take("{\"targets\":[" TARGET("a", "7", "1", "1") "]}", 1, TOP_BY_NAME));
	ck_assert_int_eq(take("{", 2, TOP_BY_NAME), -EPROTO);
	ck_assert_int_eq(take("{\"targets\":3}", 2, TOP_BY_NAME), -EPROTO);
	ck_assert_uint_eq(t.n, 1);
	/* The daemon may be of another version. */
	OK(take("{\"targets\":[{},3,{\"pid\":-1,\"name\":[]}]}", 2, TOP_BY_NAME));
	ck_assert_uint_eq(t.n, 3);
	ck_assert_str_eq(t.v[0].name, "-");
	OK(take("{\"targets\":[]}", 3, TOP_BY_NAME));
	ck_assert_uint_eq(t.n, 0);
}
