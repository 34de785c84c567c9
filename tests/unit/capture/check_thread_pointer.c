#include "lib/capture/thread_pointer.h"

#include "lib/capture/capture.h"
#include "lib/capture/state.h"
#include "tests/unit/capture/live.h"
#include "tests/unit/suite.h"

static struct live l;
static pid_t asleep;

static void set_up(void)
{
	live_start(&l, "cap_threads", NULL, NULL);
	asleep = (pid_t)live_ask(&l, "asleep 1", "ok");
	live_until_blocked(&l, l.pid);
	live_until_blocked(&l, asleep);
	live_open(&l, 1u << 24);
	live_attach(&l);
}

static void tear_down(void)
{
	live_end(&l);
}

static uint64_t pointer_of(pid_t tid)
{
	const struct thread *th = live_known(&l, tid);

	return th == NULL ? 0 : th->pointer;
}

FIXTURE(set_up, tear_down)

TEST(the_pointer_of_a_sleeping_thread_is_found)
{
	capture_want_thread_pointers(l.capture, LIVE_TARGET);
	live_ticks(&l, 2);
	ck_assert_uint_ne(pointer_of(asleep), 0);
	ck_assert_uint_ne(pointer_of(l.pid), 0);
	ck_assert_uint_ne(pointer_of(asleep), pointer_of(l.pid));
}

TEST(without_a_request_no_pointer_is_searched)
{
	live_ticks(&l, 2);
	ck_assert_uint_eq(pointer_of(asleep), 0);
}

/* The end of the own stack limits the second range, also for a thread that was never stopped. */
TEST(a_hint_with_a_second_range_finds_the_end_of_the_own_stack)
{
	const struct thread *th;

	live_ticks(&l, 2);
	th = live_known(&l, asleep);
	ck_assert_uint_eq(th->stack.hints.own_end, 0);
	capture_hint(l.capture, &l.sink, LIVE_TARGET, th->tid, 4096, 8192, 4096);
	ck_assert_uint_ne(th->stack.hints.own_end, 0);
	capture_want_thread_pointers(l.capture, LIVE_TARGET);
	thread_pointer_find(live_known(&l, asleep));
	ck_assert_uint_eq(th->stack.hints.own_end, th->pointer);
}

/*
 * A new thread without a list of robust locks: its pointer is found at its first stop. On aarch64
 * if another thread with a list was stopped before.
 */
TEST(the_first_stop_of_a_new_thread_shows_its_pointer)
{
	pid_t tid;

	capture_want_thread_pointers(l.capture, LIVE_TARGET);
	tid = (pid_t)live_ask(&l, "busy 1", "ok");
	while (live_known(&l, tid) == NULL)
		live_wait(&l);
	while (live_known(&l, tid)->pointer == 0 || live_known(&l, tid)->stack.hints.own_end == 0)
		live_ticks(&l, 1);
	l.counters.event_stops = 0;
	live_say(&l, "busy 1");
	while (l.counters.event_stops == 0)
		live_wait(&l);
	tid = (pid_t)live_answer(&l, "ok");
	while (live_known(&l, tid) == NULL)
		live_wait(&l);
	ck_assert_uint_ne(pointer_of(tid), 0);
}
