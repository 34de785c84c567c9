#include "lib/capture/slow_memory.h"

#include <sys/ptrace.h>

#include "lib/capture/sample.h"
#include "lib/capture/state.h"
#include "lib/capture/targets.h"
#include "tests/unit/capture/live.h"
#include "tests/unit/suite.h"

static struct live l;
static struct traced_process *t;
static pid_t busy;

/*
 * Makes a first slow read, which has no consequence. From then on the tracer's switches are
 * counted.
 */
static void wait_once(struct traced_process *target)
{
	const uint64_t now = target->capture->options.now_ns();

	slow_memory_was_read(target, now - 10 * NS_PER_MS, 4096);
	ck_assert(!slow_memory_is_avoided(target));
}

static void set_up(void)
{
	live_begin(&l, "cap_threads", NULL, NULL);
	busy = (pid_t)live_ask(&l, "busy 1", "ok");
	live_until_blocked(&l, l.pid);
	live_step(0);
	live_ticks(&l, 5);
	t = l.capture->targets->target;
	wait_once(t);
}

static void tear_down(void)
{
	live_end(&l);
}

static uint64_t missed(void)
{
	return l.counters.missed[MISSED_MEMORY_SLOW];
}

FIXTURE(set_up, tear_down)

TEST(after_slow_reads_the_memory_is_not_read_for_a_while)
{
	uint64_t captured = l.counters.captured, stops, repeated;

	live_step(25 * NS_PER_MS);
	for (; l.counters.captured == captured; live_patience())
		live_ticks(&l, 1);
	live_step(0);
	ck_assert_uint_eq(l.counters.captured, captured + 1);
	ck_assert_uint_eq(missed(), 0);
	/*
	 * While the memory is not read, no thread is stopped. One RECORD_MISSED tells the reader
	 * that the thread's state is unknown.
	 */
	stops = l.counters.stops;
	repeated = l.counters.repeated;
	live_ticks(&l, 10);
	ck_assert_uint_eq(missed(), 10);
	ck_assert_uint_eq(l.counters.stops, stops);
	ck_assert_uint_eq(l.counters.repeated, repeated + 10);
	ck_assert_uint_eq(l.records[RECORD_MISSED], 1);
	ck_assert(live_thread(&l, busy)->missing);
	/* Afterwards the read has taken a twentieth of the time. */
	live_later(20 * 25 * NS_PER_MS);
	live_ticks(&l, 10);
	ck_assert_uint_eq(missed(), 10);
	ck_assert_uint_ge(l.counters.captured, captured + 11);
	ck_assert(!live_thread(&l, busy)->missing);
	live_check_sum(&l);
}

/*
 * Two threads are interrupted, and the read of the first one is slow. The second one is continued
 * without a read.
 */
TEST(a_stopped_thread_is_continued_without_a_copy)
{
	uint64_t captured, stops, repeated;

	(void)live_ask(&l, "join", "ok");
	(void)live_ask(&l, "busy 2", "ok");
	/*
	 * Until a tick stops both threads, and the leader, which waits, needs no look. It would be
	 * looked at after the slow read.
	 */
	do {
		live_until_blocked(&l, l.pid);
		captured = l.counters.captured;
		repeated = l.counters.repeated;
		live_ticks(&l, 1);
	} while (l.counters.captured != captured + 2 || l.counters.repeated != repeated + 1);
	captured = l.counters.captured;
	stops = l.counters.stops;
	live_step(25 * NS_PER_MS);
	live_ticks(&l, 1);
	live_step(0);
	ck_assert_uint_eq(l.counters.stops, stops + 2);
	ck_assert_uint_eq(l.counters.captured, captured + 1);
	ck_assert_uint_eq(missed(), 1);
	live_check_sum(&l);
}

/* Each permitted read takes 15 ms. All reads together take a twentieth of the time. */
TEST(slow_reads_take_a_twentieth_of_the_time_at_most)
{
	uint64_t start, waited = 0, now;

	start = t->capture->options.now_ns();
	for (int i = 0; i < 10000; i++) {
		live_later(NS_PER_MS);
		if (slow_memory_is_avoided(t))
			continue;
		now = t->capture->options.now_ns();
		live_later(15 * NS_PER_MS);
		waited += 15 * NS_PER_MS;
		slow_memory_was_read(t, now, 4096);
	}
	now = t->capture->options.now_ns() - start;
	/* The first read may come at once. */
	ck_assert_uint_le(20 * (waited - 15 * NS_PER_MS), now);
	ck_assert_uint_ge(22 * waited, now);
}

/* A slow read long after the last one is a first one again, without a consequence. */
TEST(a_rare_slow_read_has_no_consequence)
{
	const uint64_t while_ns = 11 * NS_PER_SEC;

	for (int i = 0; i < 3; i++) {
		live_later(while_ns);
		live_ticks(&l, 2);
		wait_once(t);
	}
	live_later(while_ns / 2);
	live_ticks(&l, 2);
	slow_memory_was_read(t, t->capture->options.now_ns() - 10 * NS_PER_MS, 4096);
	ck_assert(slow_memory_is_avoided(t));
}

/* The shorter a slow read was, the sooner the counting of switches ends. */
TEST(short_waits_have_no_lasting_effect)
{
	live_later(11 * NS_PER_SEC);
	for (int i = 0; i < 50; i++) {
		uint64_t now;

		live_later(300 * NS_PER_MS);
		live_ticks(&l, 1);
		ck_assert(!l.capture->switch_watch.on);
		now = t->capture->options.now_ns();
		slow_memory_was_read(t, now - 200 * NS_PER_US, 4096);
		live_ticks(&l, 1);
		ck_assert(l.capture->switch_watch.on);
	}
	ck_assert_uint_eq(t->slow_until_ns, 0);
}

/* A read within the usual time of a copy never counts. */
TEST(a_read_within_its_time_is_not_slow)
{
	for (int i = 0; i < 100; i++)
		slow_memory_was_read(t, t->capture->options.now_ns(), 1u << 20);
	ck_assert_uint_eq(t->slow_until_ns, 0);
	ck_assert(!slow_memory_is_avoided(t));
}

/* Short waits at many ticks add up. */
TEST(several_short_waits_add_up)
{
	int n = 0;

	while (!slow_memory_is_avoided(t) && n < 10) {
		uint64_t now = t->capture->options.now_ns();

		slow_memory_was_read(t, now - 400 * NS_PER_US, 4096);
		n++;
	}
	ck_assert_int_ge(n, 2);
	ck_assert_int_le(n, 3);
	live_later(20 * 3 * NS_PER_MS);
	ck_assert(!slow_memory_is_avoided(t));
}

/* Several slow targets share the twentieth. */
TEST(the_share_is_that_of_all_targets_together)
{
	struct traced_process *other = live_bare_target(l.capture);
	uint64_t now, alone, both;

	now = t->capture->options.now_ns();
	slow_memory_was_read(t, now - 10 * NS_PER_MS, 4096);
	alone = t->slow_until_ns - now;
	slow_memory_was_read(other, now - 10 * NS_PER_MS, 4096);
	both = other->slow_until_ns - now;
	targets_free(other);
	ck_assert_uint_ge(alone, 20 * 10 * NS_PER_MS);
	ck_assert_uint_ge(both, 2 * 20 * 10 * NS_PER_MS);
}

FIXTURE(NULL, tear_down)

/* To resume a call, its arguments and its instruction are read from the thread's memory. */
TEST_IF(reads_for_a_resumed_call_count_as_reads, suite_has_getfd())
{
	uint64_t before;

	live_begin(&l, "cap_waits", "recv_all_timeout", NULL);
	live_until_blocked(&l, l.first);
	(void)live_ask(&l, "wake", "ok");
	live_until_blocked(&l, l.first);
	t = l.capture->targets->target;
	wait_once(t);
	live_step(25 * NS_PER_MS);
	OK(ptrace(PTRACE_INTERRUPT, l.first, NULL, NULL));
	before = l.counters.event_stops;
	while (l.counters.event_stops == before)
		live_wait(&l);
	live_step(0);
	ck_assert_uint_eq(l.counters.continued, 1);
	ck_assert(slow_memory_is_avoided(t));
}
