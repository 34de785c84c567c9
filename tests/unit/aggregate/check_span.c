#include "lib/aggregate/span.h"

#include "tests/unit/suite.h"

#define S  NS_PER_SEC
#define MS NS_PER_MS

static struct span span;

static void set_up(void)
{
	span_init(&span, 60 * S);
}

static void check_end(uint64_t asked, uint64_t end, uint64_t next)
{
	uint64_t got_end, got_next;

	span_end(&span, asked, &got_end, &got_next);
	ck_assert_uint_eq(got_end, end);
	ck_assert_uint_eq(got_next, next);
}

FIXTURE(set_up, NULL)

TEST(tick_before)
{
	ck_assert_uint_eq(span_tick_before(&span, 5 * S), 0);
	for (uint64_t i = 1; i <= 2 * SPAN_TICKS; i++)
		span_tick(&span, i * MS, 0, 1);
	/* One that does not get on is not a tick. */
	span_tick(&span, 2 * SPAN_TICKS * MS, 0, 1);
	span_tick(&span, 3 * MS, 0, 1);
	ck_assert_uint_eq(span_tick_before(&span, 2 * SPAN_TICKS * MS), (2 * SPAN_TICKS - 1) * MS);
	ck_assert_uint_eq(span_tick_before(&span, 9 * S), 2 * SPAN_TICKS * MS);
	ck_assert_uint_eq(span_tick_before(&span, (SPAN_TICKS + 2) * MS), (SPAN_TICKS + 1) * MS);
	/* Forgotten. */
	ck_assert_uint_eq(span_tick_before(&span, (SPAN_TICKS + 1) * MS), 0);
}

/* Ticks that capture left out are added; their number has a limit. */
TEST(ticks_between)
{
	span_tick(&span, 100 * MS, 0, 7);
	ck_assert_uint_eq(span_tick_before(&span, 100 * MS), 0);
	span_tick(&span, 140 * MS, 0, 4);
	span_tick(&span, 150 * MS, 0, 0);
	for (uint64_t ms = 100; ms < 150; ms += 10)
		ck_assert_uint_eq(span_tick_after(&span, ms * MS, UINT64_MAX), (ms + 10) * MS);
	ck_assert_uint_eq(span_tick_after(&span, 104 * MS, 111 * MS), 110 * MS);
	ck_assert_uint_eq(span_tick_after(&span, 104 * MS, 110 * MS), 0);
	ck_assert_uint_eq(span_tick_after(&span, 150 * MS, UINT64_MAX), 0);
	/* A gap has none. */
	span_tick(&span, 150 * MS + SPAN_GAP_NS + 1, 0, 500);
	ck_assert_uint_eq(span_tick_after(&span, 150 * MS, UINT64_MAX), 150 * MS + SPAN_GAP_NS + 1);
	span_tick(&span, 6 * S, 0, UINT64_MAX);
	ck_assert_uint_eq(span_tick_before(&span, 7 * S), 6 * S);
	ck_assert_uint_eq(span.n_ticks, 1 + 4 + 1 + 1 + SPAN_TICKS);
}

TEST(as_asked)
{
	span_tick(&span, 100 * S, 100 * S, 1);
	span_tick(&span, 104 * S, 102 * S, 1);
	ck_assert_uint_eq(span_closable(&span), 102 * S);
	check_end(102 * S, 102 * S, 102 * S);
	/* Behind the newest tick too: the target's end. */
	check_end(106 * S, 106 * S, 106 * S);
	/* Never before its start. */
	check_end(0, 100 * S, 100 * S);
}

TEST(due)
{
	ck_assert(!span_due(&span));
	span_tick(&span, 100 * S, 100 * S, 1);
	for (uint64_t i = 101; i < 160; i++) {
		span_tick(&span, i * S, i * S, 1);
		ck_assert(!span_due(&span));
	}
	span_tick(&span, 160 * S, 159 * S, 1);
	ck_assert(!span_due(&span));
	span_tick(&span, 160 * S, 160 * S, 1);
	ck_assert(span_due(&span));
	span_restart(&span, 160 * S);
	ck_assert(!span_due(&span));
}

TEST(gap)
{
	span_tick(&span, 100 * S, 100 * S, 1);
	span_tick(&span, 105 * S, 105 * S, 1); /* just not yet one */
	ck_assert_uint_eq(span_between(&span, 100 * S, 105 * S), 5 * S);
	ck_assert(!span_due(&span));
	span_note(&span, 111 * S);
	/* Not before what is in front of it is settled. */
	ck_assert(!span_due(&span));
	ck_assert_uint_eq(span_between(&span, 100 * S, 111 * S), 5 * S);
	ck_assert_uint_eq(span_between(&span, 106 * S, 107 * S), 0);
	ck_assert_uint_eq(span_between(&span, 106 * S, 112 * S), 1 * S);
	ck_assert_uint_eq(span_between(&span, 111 * S, 112 * S), 1 * S);
	ck_assert_uint_eq(span_between(&span, 101 * S, 102 * S), 1 * S);
	ck_assert_uint_eq(span_between(&span, 112 * S, 101 * S), 0);
	span_tick(&span, 111 * S, 111 * S, 1);
	ck_assert(span_due(&span));
	check_end(111 * S, 105 * S, 111 * S);
	/* By then the lag alone is behind its start. */
	check_end(103 * S, 105 * S, 111 * S);
	span_restart(&span, 111 * S);
	ck_assert(!span_due(&span));
	ck_assert_uint_eq(span_between(&span, 100 * S, 112 * S), 12 * S);
}

/* Two in a row, the first not settled: one. */
TEST(two_gaps)
{
	span_tick(&span, 100 * S, 100 * S, 1);
	span_tick(&span, 110 * S, 100 * S, 1);
	span_tick(&span, 120 * S, 120 * S, 1);
	check_end(120 * S, 100 * S, 120 * S);
}

/* However ticks and settled ticks come, no chunk is too long. */
TEST(never_too_long)
{
	for (uint64_t settled = 0; settled <= 400; settled += 10)
		for (uint64_t hole = 1; hole <= 300; hole++) {
			uint64_t end, next;

			span_init(&span, 60 * S);
			for (uint64_t i = 0; i <= 100; i += hole)
				span_tick(&span, i * S, 0, 1);
			span_tick(&span, 400 * S, settled * S, 1);
			span_end(&span, settled * S, &end, &next);
			ck_assert_uint_ge(end, span.start_ns);
			ck_assert_uint_le(end - span.start_ns, 65 * S);
			ck_assert_uint_ge(next, end);
			/* It gets on. */
			ck_assert_uint_gt(next, span.start_ns);
			ck_assert(span_due(&span));
		}
}
