#include "lib/aggregate/window.h"

#include "tests/unit/suite.h"

#define S  NS_PER_SEC
#define MS NS_PER_MS

static struct window window;

static void set_up(void)
{
	window_init(&window, 60 * S);
}

static void check_end(uint64_t asked, uint64_t end, uint64_t next)
{
	uint64_t got_end, got_next;

	window_end(&window, asked, &got_end, &got_next);
	ck_assert_uint_eq(got_end, end);
	ck_assert_uint_eq(got_next, next);
}

FIXTURE(set_up, NULL)

TEST(tick_before)
{
	ck_assert_uint_eq(window_tick_before(&window, 5 * S), 0);
	for (uint64_t i = 1; i <= 2 * WINDOW_TICKS; i++)
		window_tick(&window, i * MS, 0, 1);
	/* A tick that is not later than the last one does not count. */
	window_tick(&window, 2 * WINDOW_TICKS * MS, 0, 1);
	window_tick(&window, 3 * MS, 0, 1);
	ck_assert_uint_eq(window_tick_before(&window, 2 * WINDOW_TICKS * MS),
			  (2 * WINDOW_TICKS - 1) * MS);
	ck_assert_uint_eq(window_tick_before(&window, 9 * S), 2 * WINDOW_TICKS * MS);
	ck_assert_uint_eq(window_tick_before(&window, (WINDOW_TICKS + 2) * MS),
			  (WINDOW_TICKS + 1) * MS);
	/* This tick is no longer remembered. */
	ck_assert_uint_eq(window_tick_before(&window, (WINDOW_TICKS + 1) * MS), 0);
}

/* Ticks that capture skipped are added, up to a limit. */
TEST(skipped_ticks_are_added)
{
	window_tick(&window, 100 * MS, 0, 7);
	ck_assert_uint_eq(window_tick_before(&window, 100 * MS), 0);
	window_tick(&window, 140 * MS, 0, 4);
	window_tick(&window, 150 * MS, 0, 0);
	for (uint64_t ms = 100; ms < 150; ms += 10)
		ck_assert_uint_eq(window_tick_after(&window, ms * MS, UINT64_MAX), (ms + 10) * MS);
	ck_assert_uint_eq(window_tick_after(&window, 104 * MS, 111 * MS), 110 * MS);
	ck_assert_uint_eq(window_tick_after(&window, 104 * MS, 110 * MS), 0);
	ck_assert_uint_eq(window_tick_after(&window, 150 * MS, UINT64_MAX), 0);
	/* No ticks are added in a gap. */
	window_tick(&window, 150 * MS + WINDOW_GAP_NS + 1, 0, 500);
	ck_assert_uint_eq(window_tick_after(&window, 150 * MS, UINT64_MAX),
			  150 * MS + WINDOW_GAP_NS + 1);
	window_tick(&window, 6 * S, 0, UINT64_MAX);
	ck_assert_uint_eq(window_tick_before(&window, 7 * S), 6 * S);
	ck_assert_uint_eq(window.n_ticks, 1 + 4 + 1 + 1 + WINDOW_TICKS);
}

TEST(end_as_requested)
{
	window_tick(&window, 100 * S, 100 * S, 1);
	window_tick(&window, 104 * S, 102 * S, 1);
	ck_assert_uint_eq(window_closable(&window), 102 * S);
	check_end(102 * S, 102 * S, 102 * S);
	/* The end may be later than the newest tick: the target has ended. */
	check_end(106 * S, 106 * S, 106 * S);
	/* A chunk does not end before its start. */
	check_end(0, 100 * S, 100 * S);
}

TEST(due_at_its_length)
{
	ck_assert(!window_due(&window));
	window_tick(&window, 100 * S, 100 * S, 1);
	for (uint64_t i = 101; i < 160; i++) {
		window_tick(&window, i * S, i * S, 1);
		ck_assert(!window_due(&window));
	}
	window_tick(&window, 160 * S, 159 * S, 1);
	ck_assert(!window_due(&window));
	window_tick(&window, 160 * S, 160 * S, 1);
	ck_assert(window_due(&window));
	window_restart(&window, 160 * S);
	ck_assert(!window_due(&window));
}

TEST(gap)
{
	window_tick(&window, 100 * S, 100 * S, 1);
	window_tick(&window, 105 * S, 105 * S, 1); /* just less than a gap */
	ck_assert_uint_eq(window_between(&window, 100 * S, 105 * S), 5 * S);
	ck_assert(!window_due(&window));
	window_note(&window, 111 * S);
	/* The chunk is not due until the ticks before the gap are settled. */
	ck_assert(!window_due(&window));
	ck_assert_uint_eq(window_between(&window, 100 * S, 111 * S), 5 * S);
	ck_assert_uint_eq(window_between(&window, 106 * S, 107 * S), 0);
	ck_assert_uint_eq(window_between(&window, 106 * S, 112 * S), 1 * S);
	ck_assert_uint_eq(window_between(&window, 111 * S, 112 * S), 1 * S);
	ck_assert_uint_eq(window_between(&window, 101 * S, 102 * S), 1 * S);
	ck_assert_uint_eq(window_between(&window, 112 * S, 101 * S), 0);
	window_tick(&window, 111 * S, 111 * S, 1);
	ck_assert(window_due(&window));
	check_end(111 * S, 105 * S, 111 * S);
	/* 103 s lags by more than WINDOW_LAG_NS: the end is moved forward, into the gap. */
	check_end(103 * S, 105 * S, 111 * S);
	window_restart(&window, 111 * S);
	ck_assert(!window_due(&window));
	ck_assert_uint_eq(window_between(&window, 100 * S, 112 * S), 12 * S);
}

/* The ticks before the first gap are not settled when the second gap comes. */
TEST(two_gaps_count_as_one)
{
	window_tick(&window, 100 * S, 100 * S, 1);
	window_tick(&window, 110 * S, 100 * S, 1);
	window_tick(&window, 120 * S, 120 * S, 1);
	check_end(120 * S, 100 * S, 120 * S);
}

/* No chunk is too long, whatever the order of ticks and settled ticks. */
TEST(chunks_are_never_too_long)
{
	for (uint64_t settled = 0; settled <= 400; settled += 10)
		for (uint64_t hole = 1; hole <= 300; hole++) {
			uint64_t end, next;

			window_init(&window, 60 * S);
			for (uint64_t i = 0; i <= 100; i += hole)
				window_tick(&window, i * S, 0, 1);
			window_tick(&window, 400 * S, settled * S, 1);
			window_end(&window, settled * S, &end, &next);
			ck_assert_uint_ge(end, window.start_ns);
			ck_assert_uint_le(end - window.start_ns, 65 * S);
			ck_assert_uint_ge(next, end);
			/* The next chunk begins later. */
			ck_assert_uint_gt(next, window.start_ns);
			ck_assert(window_due(&window));
		}
}
