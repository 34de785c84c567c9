#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "lib/capture/capture.h"
#include "lib/capture/record.h"
#include "lib/capture/sample.h"
#include "lib/capture/state.h"
#include "tests/unit/capture/live.h"
#include "tests/unit/suite.h"

/* Room for the headroom, and for some samples of small stacks. */
#define SMALL_RING (2u << 20)

static struct live l;

static void threads(size_t ring_bytes)
{
	memset(&l, 0, sizeof(l));
	live_start(&l, "cap_threads", NULL, NULL);
	live_open(&l, ring_bytes);
	OK(live_add(&l));
}

static void tear_down(void)
{
	live_end(&l);
}

/* Stops reading, and gives ticks until samples are missed for lack of room. */
static void fill_ring(void)
{
	l.reads = false;
	while (l.counters.missed[MISSED_RING_FULL] == 0) {
		live_tick(&l);
		live_settle(&l);
	}
}

FIXTURE(NULL, tear_down)

TEST(without_room_in_the_ring_no_thread_is_stopped)
{
	uint64_t stops, repeated, missed;
	pid_t tid;

	threads(SMALL_RING);
	tid = (pid_t)live_ask(&l, "busy 1", "ok");
	live_until_blocked(&l, l.pid);
	live_ticks(&l, 1);
	fill_ring();
	stops = l.counters.stops;
	repeated = l.counters.repeated;
	missed = l.counters.missed[MISSED_RING_FULL];
	live_ticks(&l, 100);
	ck_assert_uint_eq(l.counters.stops, stops);
	ck_assert_uint_eq(l.counters.missed[MISSED_RING_FULL], missed + 100);
	/* The sleeping thread needs no room. */
	ck_assert_uint_eq(l.counters.repeated, repeated + 100);
	live_check_sum(&l);
	/* One RECORD_MISSED tells the reader that the thread's state is unknown. */
	live_read(&l);
	ck_assert(live_thread(&l, tid)->missing);
	ck_assert_uint_eq(l.records[RECORD_MISSED], 1);
	l.reads = true;
	live_ticks(&l, 5);
	ck_assert(!live_thread(&l, tid)->missing);
	ck_assert_uint_eq(live_thread(&l, tid)->last_sample_tick, l.tick);
	ck_assert_uint_eq(l.records[RECORD_RESET], 0);
	live_check_sum(&l);
}

/* The ring has no room even for a RECORD_TICK. Afterwards all state is written anew. */
TEST(after_lost_records_all_threads_are_announced_anew)
{
	uint64_t repeated, ticks;
	uint64_t resets;
	pid_t tid;

	threads(SMALL_RING);
	tid = (pid_t)live_ask(&l, "busy 1", "ok");
	live_until_blocked(&l, l.pid);
	live_ticks(&l, 1);
	fill_ring();
	do {
		ticks = l.sink.ring.head;
		live_tick(&l);
	} while (l.sink.ring.head != ticks);
	live_tick(&l);
	/* Ticks of a thread that the reader does not know do not count as repeated. */
	repeated = l.counters.repeated;
	live_ticks(&l, 10);
	ck_assert_uint_eq(l.counters.repeated, repeated);
	live_check_sum(&l);
	live_read(&l);
	l.reads = true;
	/* A RECORD_RESET is smaller than a RECORD_TICK, so one may have had room. */
	resets = l.records[RECORD_RESET];
	ck_assert_uint_le(resets, 1);
	live_ticks(&l, 5);
	ck_assert_uint_eq(l.records[RECORD_RESET], resets + 1);
	ck_assert_uint_eq(live_thread(&l, tid)->samples, 5);
	ck_assert_uint_eq(live_thread(&l, l.pid)->samples, 1);
	live_check_sum(&l);
}

/* If there is no reader, that is the reason of missed samples, and not a full ring. */
TEST(without_a_reader_samples_are_missed_for_that_reason)
{
	uint64_t full;
	void *room;

	threads(SMALL_RING);
	(void)live_ask(&l, "busy 1", "ok");
	fill_ring();
	full = l.counters.missed[MISSED_RING_FULL];
	l.sink.reader_is_gone = true;
	live_ticks(&l, 10);
	ck_assert_uint_ge(l.counters.missed[MISSED_NO_READER], 10);
	/* Fills the ring, so that it has no room even for a RECORD_TICK. */
	while (ring_reserve(&l.sink.ring, sizeof(struct record), &room) == 0)
		ring_commit(&l.sink.ring, RECORD_TICK, sizeof(struct record));
	live_ticks(&l, 10);
	ck_assert(l.capture->targets->target->reader.needs_reset);
	ck_assert_uint_eq(l.counters.missed[MISSED_RING_FULL], full);
	/* The target has two threads, one of which is asleep. */
	ck_assert_uint_ge(l.counters.missed[MISSED_NO_READER], 10 + 2 * 9);
	live_check_sum(&l);
}

/* Without a reader no thread is stopped, even if the ring has room. */
TEST(without_a_reader_no_thread_is_stopped)
{
	uint64_t stops;

	threads(16u << 20);
	(void)live_ask(&l, "asleep 5", "ok");
	(void)live_ask(&l, "busy 1", "ok");
	live_ticks(&l, 3);
	stops = l.counters.stops;
	l.sink.reader_is_gone = true;
	live_ticks(&l, 10);
	ck_assert_uint_eq(l.counters.stops, stops);
	ck_assert_uint_eq(l.counters.missed[MISSED_NO_READER], 10 * 7);
	live_check_sum(&l);
}

/* Threads and the process end while the ring has no room for any record. */
TEST(record_end_waits_for_room_in_the_ring)
{
	uint64_t head;

	threads(SMALL_RING);
	(void)live_ask(&l, "busy 1", "ok");
	fill_ring();
	do {
		head = l.sink.ring.head;
		live_tick(&l);
	} while (l.sink.ring.head != head);
	OK(kill(l.pid, SIGKILL));
	/* Capture has detached from the leader, which may still be dying when no thread is left. */
	while (l.capture->targets->target->phase != TRACED_ENDED)
		live_wait(&l);
	live_tick(&l);
	ck_assert_uint_eq(l.gone, 0);
	live_read(&l);
	l.reads = true;
	live_tick(&l);
	ck_assert_uint_eq(l.gone, 1);
	ck_assert(l.ended);
	live_check_sum(&l);
}

/* Replaces the reader by one that knows no threads. */
static void replace_reader(void)
{
	capture_reset(l.capture, &l.sink);
	for (size_t i = 0; i < l.n_threads; i++)
		l.threads[i].exited = true;
}

/* A new reader does not know the ended threads, so it gets no RECORD_EXIT. */
TEST(a_new_reader_gets_no_exits_of_ended_threads)
{
	threads(16u << 20);
	(void)live_ask(&l, "asleep 5", "ok");
	live_ticks(&l, 2);
	(void)live_ask(&l, "join", "ok");
	while (live_status(l.pid, "Threads:") > 1)
		live_wait(&l);
	live_reap(&l);
	replace_reader();
	live_ticks(&l, 2);
	ck_assert_uint_eq(l.records[RECORD_RESET], 1);
	ck_assert_uint_eq(l.records[RECORD_EXIT], 0);
	ck_assert_uint_eq(l.counters.threads, 1);
	live_check_sum(&l);
}

/* The new reader does not know the threads that have an interrupt under way. */
TEST(a_new_reader_gets_no_samples_of_interrupts_before_it)
{
	pid_t tid;

	threads(16u << 20);
	tid = (pid_t)live_ask(&l, "busy 4", "ok");
	for (int i = 0; i < 50; i++) {
		live_tick(&l);
		replace_reader();
		live_settle(&l);
		live_check_sum(&l);
		/* A tick may be missed on a busy machine. */
		do {
			live_ticks(&l, 1);
			live_patience();
		} while (live_thread(&l, tid)->last_sample_tick < l.tick);
	}
	ck_assert_uint_eq(l.records[RECORD_RESET], 50);
	ck_assert_uint_eq(l.counters.missed[MISSED_RING_FULL], 0);
	ck_assert_uint_gt(l.counters.missed[MISSED_NO_READER], 0);
	live_check_sum(&l);
}

TEST(a_hint_shortens_the_copy)
{
	const struct capture_sink other = {0};
	const struct live_thread *th;
	uint64_t sp;
	pid_t tid;

	threads(16u << 20);
	tid = (pid_t)live_ask(&l, "busy 1", "ok");
	live_ticks(&l, 2);
	th = live_thread(&l, tid);
	sp = th->sp;
	capture_hint(l.capture, &l.sink, LIVE_TARGET, (uint32_t)tid, sp - 4096, sp + 256, 0);
	live_ticks(&l, 1);
	ck_assert_uint_lt(th->stack_size, 1024);
	/* Hints that are ignored: for another target, for no thread, from another reader. */
	capture_hint(l.capture, &l.sink, LIVE_TARGET + 1, (uint32_t)tid, sp - 4096, sp + 65536, 0);
	capture_hint(l.capture, &l.sink, LIVE_TARGET, 0, sp - 4096, sp + 65536, 0);
	capture_hint(l.capture, &other, LIVE_TARGET, (uint32_t)tid, sp - 4096, sp + 65536, 0);
	live_ticks(&l, 1);
	ck_assert_uint_lt(th->stack_size, 1024);
	capture_hint(l.capture, &l.sink, LIVE_TARGET, (uint32_t)tid, sp - 4096, sp + 2048, 0);
	live_ticks(&l, 1);
	ck_assert_uint_gt(th->stack_size, 1024);
}

/* The thread is named after its first sample, and does not run again. */
TEST(a_name_set_during_a_sleep_is_recorded)
{
	const struct live_thread *th;
	pid_t tid;

	threads(16u << 20);
	tid = (pid_t)live_ask(&l, "asleep 1", "ok");
	live_until_blocked(&l, tid);
	live_ticks(&l, 2);
	th = live_thread(&l, tid);
	ck_assert_str_eq(th->comm, "cap_threads");
	(void)live_ask(&l, "name fifteen-letters", "ok");
	/*
	 * The name is read again after 8 to 15 ticks, and the first due name is checked for every 8
	 * ticks.
	 */
	live_ticks(&l, 24);
	ck_assert_uint_eq(th->samples, 1);
	ck_assert_str_eq(th->comm, "fifteen-letters");
	(void)live_ask(&l, "name later", "ok");
	live_ticks(&l, 1024);
	ck_assert_uint_eq(th->samples, 1);
	ck_assert_str_eq(th->comm, "later");
	ck_assert(!th->is_main);
	ck_assert_uint_eq(l.counters.stops, 0);
}

/* The thread is announced only when its name and the end of its stack could be read. */
TEST(a_thread_whose_name_cannot_be_read_is_announced_later)
{
	struct thread *th;
	uint64_t own_end;

	threads(16u << 20);
	live_until_blocked(&l, l.pid);
	live_ticks(&l, 2);
	th = live_known(&l, l.pid);
	own_end = th->stack.hints.own_end;
	th->stack.hints.own_end = 0;
	replace_reader();
	live_take_descriptors();
	live_tick(&l);
	live_give_descriptors();
	ck_assert(!th->reader.announced);
	ck_assert_uint_eq(l.counters.missed[MISSED_NO_RESOURCES], 1);
	live_ticks(&l, 2);
	ck_assert_uint_eq(th->stack.hints.own_end, own_end);
	ck_assert_str_eq(live_thread(&l, l.pid)->comm, "cap_threads");
	live_check_sum(&l);
}

/* After RECORD_RUNNING the reader has a stack for the thread again, that of its last run. */
TEST(a_miss_is_recorded_once_until_the_thread_has_run)
{
	struct thread *th;

	threads(16u << 20);
	live_until_blocked(&l, l.pid);
	live_ticks(&l, 2);
	th = live_known(&l, l.pid);
	record_missed(th, MISSED_LATE, 1, l.tick, l.tick * l.tick_ns);
	record_missed(th, MISSED_LATE, 1, l.tick, l.tick * l.tick_ns);
	live_read(&l);
	ck_assert_uint_eq(l.records[RECORD_MISSED], 1);
	record_running(th, l.tick, l.tick * l.tick_ns);
	record_missed(th, MISSED_LATE, 1, l.tick, l.tick * l.tick_ns);
	live_read(&l);
	ck_assert_uint_eq(l.records[RECORD_MISSED], 2);
}
