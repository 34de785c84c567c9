/* The ticks of a look, and those that the look covers for one thread. */
#include "lib/capture/schedule.h"

#include "lib/capture/state.h"
#include "tests/unit/suite.h"

#define TICK_NS (10 * NS_PER_MS)

static struct capture capture;
static struct traced_process process;

/* A process whose rate is rate_ticks of every rate_of ticks. */
static void set_up(void)
{
	capture = (struct capture){.wake_ticks = 1, .wake_of = 1};
	process = (struct traced_process){
		.capture = &capture,
		.schedule = {.rate_ticks = 1, .rate_of = 1},
	};
}

FIXTURE(set_up, NULL)

static const struct {
	uint32_t rate_of;		/* a tick of the process is every so many */
	uint64_t previous;		/* the look before */
	uint64_t next_tick, slept_tick; /* as scheduled then */
	uint64_t tick;			/* the look */
	uint64_t due, length, left_out; /* length: in ticks of capture */
	bool slept;
} spans[] = {
	/* The first look. */
	{1, 0, 0, 0, 500, 500, 0, 0, false},
	/* The next tick, and one that comes late. */
	{1, 80, 0, 0, 81, 1, 1, 0, false},
	{1, 80, 0, 0, 83, 3, 1, 0, false},
	/* A scheduled look, one that comes two ticks late, and one that an event has brought
	 * forward.
	 */
	{1, 80, 88, 88, 88, 8, 1, 7, true},
	{1, 80, 88, 88, 90, 10, 1, 7, true},
	{1, 80, 0, 88, 84, 4, 1, 3, false},
	/* A tick of the process is every second one. */
	{2, 80, 0, 0, 82, 1, 2, 0, false},
	{2, 80, 88, 88, 88, 4, 2, 3, true},
};

TESTS(the_span_of_a_look, array_size(spans))
{
	const uint64_t tick = spans[_i].tick, previous = spans[_i].previous;
	struct tick_span span;

	process.schedule.rate_of = spans[_i].rate_of;
	process.schedule.next_tick = spans[_i].next_tick;
	process.schedule.slept_tick = spans[_i].slept_tick;
	schedule_all(&capture);
	process.ticks.span = (struct tick_span){.last = previous, .last_ns = previous * TICK_NS};
	span = schedule_span(&process, tick, tick * TICK_NS);
	ck_assert_uint_eq(span.last, tick);
	ck_assert_uint_eq(span.last_ns, tick * TICK_NS);
	ck_assert_uint_eq(span.previous, previous);
	ck_assert_uint_eq(span.n, spans[_i].due);
	ck_assert_uint_eq(span.length_ns, spans[_i].length * TICK_NS);
	ck_assert_uint_eq(span.left_out, spans[_i].left_out);
	ck_assert_int_eq(span.slept, spans[_i].slept);
}

static const struct {
	uint64_t due, left_out;
	bool slept;
	uint64_t awake_ns;
	uint64_t first, ticks, before; /* first: of the covered ticks */
	uint64_t first_due;	       /* the first tick that was not left out */
} covered[] = {
	/* The example of schedule.h, and its limits. */
	{8, 7, true, 25 * NS_PER_MS, 83, 6, 2, 88},
	{8, 7, true, 0, 81, 8, 0, 88},
	{8, 7, true, TICK_NS - 1, 81, 8, 0, 88},
	{8, 7, true, TICK_NS, 82, 7, 1, 88},
	{8, 7, true, 7 * TICK_NS, 88, 1, 7, 88},
	{8, 7, true, UINT64_MAX, 88, 1, 7, 88},
	/* A planned look that comes two ticks late. */
	{10, 7, true, UINT64_MAX, 88, 1, 7, 86},
	/* An event has brought the look forward. */
	{8, 7, false, 0, 88, 1, 7, 88},
	/* No tick was left out; the tracer was late. */
	{8, 0, false, 0, 88, 1, 0, 81},
	{1, 0, true, 0, 88, 1, 0, 88},
};

TESTS(the_ticks_that_a_look_covers, array_size(covered))
{
	const struct tick_span span = {
		.last = 88,
		.last_ns = 88 * TICK_NS,
		.previous = 88 - covered[_i].due,
		.n = covered[_i].due,
		.length_ns = TICK_NS,
		.left_out = covered[_i].left_out,
		.slept = covered[_i].slept,
	};
	const struct covered_ticks c = schedule_covered(&span, covered[_i].awake_ns);
	const struct covered_ticks first = schedule_first(&span);

	ck_assert_uint_eq(first.n, 1);
	ck_assert_uint_eq(first.first, covered[_i].first_due);
	ck_assert_uint_eq(first.first_ns, covered[_i].first_due * TICK_NS);

	ck_assert_uint_eq(c.first, covered[_i].first);
	ck_assert_uint_eq(c.first_ns, covered[_i].first * TICK_NS);
	ck_assert_uint_eq(c.n, covered[_i].ticks);
	ck_assert_uint_eq(c.n_unchanged, covered[_i].before);
}
