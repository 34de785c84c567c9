#include "daemon/broker/report/times.h"

#include "lib/base/util.h"
#include "tests/unit/suite.h"

static bool differ(double told_s, double kernel_s, uint32_t rate_hz)
{
	const struct capture_counters c = {
		.compared_running_ns = (uint64_t)(told_s * 1e9),
		.compared_cpu_ns = (uint64_t)(kernel_s * 1e9),
	};

	return times_differ(&c, rate_hz);
}

TEST(a_tenth_that_is_more_than_chance_is_a_difference)
{
	/* The standard deviation of 10 s at 100 Hz is 0.32 s. */
	ck_assert(differ(8.9, 10, 100));
	ck_assert(!differ(9.1, 10, 100));
	ck_assert(differ(11.1, 10, 100));
	ck_assert(!differ(10.9, 10, 100));
	/* It is 1 s of 100 s. */
	ck_assert(!differ(95, 100, 100));
	/* Of 5 s it is 0.22 s. */
	ck_assert(!differ(4.4, 5, 100));
	ck_assert(differ(4.3, 5, 100));
	ck_assert(differ(4.4, 5, 1000));
	/* Too short, and nothing. */
	ck_assert(!differ(1, 4.9, 1000));
	ck_assert(!differ(0, 0, 100));
	ck_assert(differ(6, 0, 100));
}

TEST(the_line_of_all_processors_is_parsed)
{
	struct processor_times p;

	ck_assert(times_parse("cpu  100 1 20 300 40 5 6 7 8 9\ncpu0 1 1 1 1 1 1 1 1\n", &p));
	ck_assert_uint_eq(p.all, 479);
	ck_assert_uint_eq(p.idle, 340);
	ck_assert_uint_eq(p.stolen, 7);
	ck_assert(!times_parse("", &p));
	ck_assert(!times_parse("cpu  100 1 20\n", &p));
}

TEST(the_cause_that_can_be_seen_is_named)
{
	static const struct {
		struct times times;
		const char *cause;
	} v[] = {
		{{.processors = {1000, 10, 0}}, "the processors were busy for 99 % of the time"},
		{{.processors = {1000, 500, 0}, .throttled_ns = 2 * NS_PER_SEC},
		 "its control group was throttled for 2.0 s (cpu.stat)"},
		{{.processors = {1000, 10, 0}, .throttled_ns = 1 * NS_PER_SEC},
		 "the processors were busy for 99 % of the time"},
		{{.processors = {1000, 10, 150}, .allowed_processors = 1},
		 "the host of this virtual machine kept the processors for 15 % of the time "
		 "(steal)"},
		{{.processors = {1000, 500, 0}, .allowed_processors = 1},
		 "it is bound to 1 of the processors, which together were busy for 50 % of the "
		 "time"},
		{{.processors = {0, 0, 0}}, "the processors were busy for 0 % of the time"},
	};

	for (size_t i = 0; i < array_size(v); i++) {
		char cause[160];

		times_cause(&v[i].times, 10 * NS_PER_SEC, cause, sizeof(cause));
		ck_assert_str_eq(cause, v[i].cause);
	}
}
