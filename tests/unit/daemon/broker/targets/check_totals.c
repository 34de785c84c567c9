#include "daemon/broker/targets/totals.h"

#include <unistd.h>

#include "daemon/msg/discard.h"
#include "tests/unit/daemon/broker/broker_builder.h"
#include "tests/unit/suite.h"

static struct broker b;
static struct heartbeat heartbeat;
static struct instance instance;
static struct run *run;
static struct capture_counters *page;

/* A run whose two threads capture has sampled at 10 ticks, and a third one that it cannot seize. */
static void set_up(void)
{
	build_broker(&b);
	heartbeat = (struct heartbeat){.beat.time_ns = 5 * NS_PER_SEC};
	b.modules.children.heartbeat = &heartbeat;
	instance = (struct instance){.pid = 1};
	run = build_run(&b, &instance, NULL);
	run->was_attached = run->in_capture = true;
	run->rate_hz = run->full_hz = 100;
	page = &heartbeat.slots[run->slot];
	*page = (struct capture_counters){
		.ticks = 10, .expected = 20, .captured = 20, .threads = 2, .refused = 1};
}

FIXTURE(set_up, NULL)

static void start_capture(uint64_t threads)
{
	*page = (struct capture_counters){.threads = threads};
	run->no_capture_since_ns = 0;
	run->in_capture = true;
}

TEST(counters_of_all_capture_processes_are_added)
{
	struct run_totals totals;

	totals_capture_died(&b.modules.targets, 0);
	start_capture(2);
	page->captured = 5;
	totals_of_run(&b.modules.targets, run, &totals);
	ck_assert_uint_eq(totals.capture.captured, 25);
	ck_assert_uint_eq(totals.capture.ticks, 10);
}

TEST(sums_have_all_kinds_and_reasons)
{
	const struct run_totals totals = {
		.missed_no_capture = 1,
		.capture = {.captured = 2, .repeated = 3, .filled = 4},
		.capture.missed = {[0] = 5, [MISSED_N - 1] = 6},
		.chunks.discarded = {[1] = 7, [DISCARD_REASONS_MAX - 1] = 8},
	};

	ck_assert_uint_eq(totals_taken(&totals), 9);
	ck_assert_uint_eq(totals_missed(&totals), 12);
	ck_assert_uint_eq(totals_discarded(&totals), 15);
}

/* A capture that was taken over can write anything into its page. */
TEST(counters_that_do_not_add_up_are_dropped)
{
	uint64_t *const nonsense[] = {&page->captured, &page->filled, &page->missed[0]};

	for (size_t n = 0; n < array_size(nonsense); n++) {
		struct run_totals totals;

		*page = (struct capture_counters){.ticks = 10, .expected = 20, .threads = 2};
		*nonsense[n] = n == 0 ? 21 : UINT64_MAX - 5;
		page->repeated = n == 0 ? 0 : 10;
		run->no_capture_since_ns = 0;
		totals_capture_died(&b.modules.targets, 0);
		totals_of_run(&b.modules.targets, run, &totals);
		ck_assert_uint_eq(totals.capture.expected, 0);
		ck_assert_uint_eq(totals.capture.captured + totals.capture.filled, 0);
		ck_assert_uint_eq(totals_threads(&b.modules.targets, run), 0);
	}
}

/* Not the sum over the capture processes. */
TEST(threads_are_those_that_the_present_capture_knows)
{
	ck_assert_uint_eq(totals_threads(&b.modules.targets, run), 2);
	totals_capture_died(&b.modules.targets, 0);
	ck_assert_uint_eq(totals_threads(&b.modules.targets, run), 2);
	start_capture(3);
	ck_assert_uint_eq(totals_threads(&b.modules.targets, run), 3);
	totals_capture_died(&b.modules.targets, 0);
	start_capture(1);
	ck_assert_uint_eq(totals_threads(&b.modules.targets, run), 1);
}

TEST(a_target_that_was_never_attached_has_no_threads)
{
	run->was_attached = false;
	ck_assert_uint_eq(totals_threads(&b.modules.targets, run), 0);
}

TEST(ticks_without_a_capture_are_missed)
{
	struct run_totals totals;

	totals_capture_died(&b.modules.targets, 0);
	ck_assert_uint_eq(run->no_capture_since_ns, 5 * NS_PER_SEC);
	totals_count_missed(run, 6 * NS_PER_SEC);
	totals_of_run(&b.modules.targets, run, &totals);
	ck_assert_uint_eq(totals.missed_no_capture, 100 * 2);
	ck_assert_uint_eq(totals.capture.expected, 20 + 100 * 2);
	ck_assert_uint_eq(totals.capture.ticks, 10 + 100);
}

/* And not at the rate of the timer, which is that of the fastest target. */
TEST(missed_ticks_are_those_of_the_target_s_rate)
{
	struct run_totals totals;

	run->rate_hz = 25;
	totals_capture_died(&b.modules.targets, 0);
	totals_count_missed(run, 6 * NS_PER_SEC);
	totals_of_run(&b.modules.targets, run, &totals);
	ck_assert_uint_eq(totals.missed_no_capture, 25 * 2);
	ck_assert_uint_eq(totals.capture.ticks, 10 + 25);
}

/* unwind makes no chunk of a process that is only recorded. */
TESTS(the_chunk_under_way_is_lost_with_unwind, 2)
{
	struct unwind u;
	struct ship ship;
	const int end = build_unwind(&b, &u);

	build_ship(&b, &ship);
	instance.ship = &ship;
	run->unwind = &u;
	run->session = SESSION_OPEN;
	run->is_for_recordings = _i == 1;
	totals_unwind_died(&b.modules.targets, &u);
	ck_assert_uint_eq(instance.delivery.chunks.made, _i == 0);
	ck_assert_uint_eq(instance.delivery.chunks.discarded[DISCARD_UNWIND_DIED], _i == 0);
	ck_assert_int_eq(client_report_is_empty(&ship.unreported), _i == 1);
	(void)close(end);
}
