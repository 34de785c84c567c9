#include "lib/capture/detach.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/capture/restart/partial.h"
#include "lib/capture/restart/resume.h"
#include "lib/capture/state.h"
#include "lib/capture/targets.h"
#include "lib/capture/tracees.h"
#include "tests/unit/capture/live.h"
#include "tests/unit/suite.h"

static struct live l;

#define OTHER_TARGET (LIVE_TARGET + 1)

/* A second target, with one thread. */
static struct traced_process *other;
static pid_t other_pid;

static void set_up(void)
{
	live_begin(&l, "cap_threads", NULL, NULL);
	live_until_blocked(&l, l.pid);
	live_ticks(&l, 3);
}

static void tear_down(void)
{
	targets_free(other);
	if (other_pid > 0) {
		OK(kill(other_pid, SIGKILL));
		ck_assert_int_eq(waitpid(other_pid, NULL, 0), other_pid);
	}
	/*
	 * live_end() waits for a tick to find the target's end, so the target must be sampled
	 * again.
	 */
	FOR_EACH_TARGET (run, l.capture)
		if (run->phase == TRACED_DETACHING)
			run->phase = TRACED_SAMPLED;
	live_end(&l);
}

FIXTURE(set_up, tear_down)

TEST(a_sleeping_thread_is_not_awaited)
{
	ck_assert(capture_settle(l.capture));
}

/*
 * The call of the interrupted thread returns because of capture, which must repair it before the
 * tracer ends.
 */
TEST(a_stop_without_a_sample_is_awaited)
{
	struct thread *th = live_known(&l, l.pid);

	OK(ptrace(PTRACE_INTERRUPT, th->tid, NULL, NULL));
	th->due = DUE_STOP;
	ck_assert(!capture_settle(l.capture));
	while (th->due != DUE_NOTHING)
		live_wait(&l);
	ck_assert(capture_settle(l.capture));
}

/*
 * Advances capture's time. The first capture_settle() cuts calls short; the second one does not
 * wait for these any more.
 */
static bool is_settled_later(uint64_t seconds)
{
	live_later(seconds * NS_PER_SEC);
	(void)!capture_settle(l.capture);
	return capture_settle(l.capture);
}

/* A thread in a sleep that does not end is given up. */
TEST(the_wait_for_a_stop_has_a_limit)
{
	live_known(&l, l.pid)->due = DUE_STOP;
	ck_assert(!capture_settle(l.capture));
	ck_assert(!is_settled_later(1));
	ck_assert(is_settled_later(1));
}

/*
 * A thread that makes progress is awaited longer, because it may share its processor with many
 * others.
 */
TEST(a_running_thread_is_awaited_longer)
{
	pid_t tid = (pid_t)live_ask(&l, "busy 1", "ok");

	live_ticks(&l, 1);
	live_known(&l, tid)->due = DUE_STOP;
	ck_assert(!capture_settle(l.capture));
	ck_assert(!is_settled_later(8));
	ck_assert(is_settled_later(8));
}

static void put_into_wait(enum resume_state state, long nr)
{
	struct resumed_call *r = &live_known(&l, l.pid)->resumed;

	r->state = state;
	r->same_call = true;
	r->partial.nr = nr;
}

/*
 * The end of the tracer would act like a signal on a thread at the begin of a call. That state
 * lasts only for a moment.
 */
TEST(a_thread_at_the_begin_of_a_call_is_awaited)
{
	put_into_wait(RESUME_ENTERING, SYS_ppoll);
	ck_assert(!capture_settle(l.capture));
	ck_assert(!is_settled_later(2));
	put_into_wait(RESUME_INSIDE, SYS_ppoll);
	ck_assert(capture_settle(l.capture));
}

/* If the tracer ended now, a connect(2) whose time is over would fail with EALREADY. */
TEST(a_resumed_connect_is_awaited)
{
	put_into_wait(RESUME_INSIDE, SYS_connect);
	ck_assert(!capture_settle(l.capture));
	ck_assert(is_settled_later(2));
}

/*
 * If the tracer ended now, the call would return the last part only. So capture interrupts it after
 * some time.
 */
TEST(a_partial_transfer_is_cut_short_after_a_while)
{
	struct thread *th = live_known(&l, l.pid);
	const uint64_t stops = l.counters.event_stops;

	put_into_wait(RESUME_INSIDE, SYS_write);
	th->resumed.same_call = false;
	ck_assert(!capture_settle(l.capture));
	ck_assert(!is_settled_later(1));
	ck_assert_int_eq(live_state(l.pid), 'S');
	ck_assert(!is_settled_later(1));
	th->resumed.state = RESUME_NONE;
	while (l.counters.event_stops == stops)
		live_wait(&l);
	ck_assert(capture_settle(l.capture));
}

/* A thread that never stops is given up. */
TEST(a_thread_that_never_stops_is_given_up)
{
	uint64_t seconds = 0;

	put_into_wait(RESUME_ENTERING, SYS_write);
	while (!capture_settle(l.capture) && seconds++ < 100)
		live_later(NS_PER_SEC);
	ck_assert_uint_ge(seconds, 4);
	ck_assert_uint_le(seconds, 20);
}

/*
 * Starts the second target. Its thread is in a resumed call. moves: the thread runs, else it
 * sleeps.
 */
static struct thread *start_other(bool moves)
{
	struct thread *th;
	char path[32];

	other_pid = fork();
	ck_assert_int_ge(other_pid, 0);
	while (other_pid == 0)
		if (!moves)
			(void)pause();
	if (!moves)
		live_until_blocked(&l, other_pid);
	(void)snprintf(path, sizeof(path), "/proc/%d", (int)other_pid);
	other = live_bare_target(l.capture);
	other->id = OTHER_TARGET;
	other->pid = other_pid;
	other->proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	OK(tracees_adopt(other, (uint32_t)other_pid));
	th = live_known(&l, other_pid);
	th->resumed.state = RESUME_INSIDE;
	th->resumed.partial.nr = SYS_write;
	return th;
}

/*
 * Calls capture_prepare_detach, and checks that it does not return true again soon after. Returns
 * the first result.
 */
static bool is_in_a_pause(void)
{
	const bool tried = capture_prepare_detach(l.capture);

	live_later(NS_PER_SEC / 2);
	ck_assert(!capture_prepare_detach(l.capture));
	ck_assert(!capture_prepare_detach(l.capture));
	return tried;
}

static bool can_detach_later(uint64_t seconds)
{
	live_later(seconds * NS_PER_SEC);
	(void)!capture_prepare_detach(l.capture);
	return capture_prepare_detach(l.capture);
}

static void remove_it(void)
{
	ck_assert(!capture_is_detaching(l.capture));
	OK(capture_remove(l.capture, LIVE_TARGET));
	ck_assert(capture_is_detaching(l.capture));
}

/* Ends the resumed call. Afterwards capture waits for nothing. */
static void end_resumed_call(struct thread *th)
{
	th->resumed.state = RESUME_NONE;
	ck_assert(capture_prepare_detach(l.capture));
	ck_assert(capture_settle(l.capture));
}

TEST(capture_can_detach_from_an_idle_target_at_once)
{
	ck_assert(!capture_prepare_detach(l.capture));
	remove_it();
	ck_assert(capture_prepare_detach(l.capture));
	ck_assert(capture_settle(l.capture));
}

/* The detaching target's call is cut short, while the others have ticks. */
TEST(a_partial_transfer_of_the_leaving_target_is_cut_short)
{
	const uint64_t stops = l.counters.event_stops;

	put_into_wait(RESUME_INSIDE, SYS_write);
	live_known(&l, l.pid)->resumed.same_call = false;
	remove_it();
	ck_assert(!capture_prepare_detach(l.capture));
	ck_assert(!can_detach_later(1));
	ck_assert(!can_detach_later(1));
	ck_assert(l.capture->targets->target->settling.cut);
	ck_assert(!l.capture->detaching.all.cut);
	live_known(&l, l.pid)->resumed.state = RESUME_NONE;
	while (l.counters.event_stops == stops)
		live_wait(&l);
	ck_assert(capture_prepare_detach(l.capture));
}

TEST(a_leaving_target_that_ends_needs_no_detach)
{
	put_into_wait(RESUME_INSIDE, SYS_write);
	live_known(&l, l.pid)->resumed.same_call = false;
	remove_it();
	OK(capture_remove(l.capture, LIVE_TARGET));
	ck_assert(!capture_prepare_detach(l.capture));
	targets_end(state_next(l.capture, NULL), TRACED_END_GONE);
	ck_assert(!capture_is_detaching(l.capture));
	ck_assert(!capture_prepare_detach(l.capture));
}

/*
 * Detaching from one target detaches from all for a moment, so a call of another target is awaited,
 * too.
 */
TEST(a_resumed_call_of_another_target_is_awaited)
{
	struct thread *th = start_other(true);

	remove_it();
	ck_assert(is_in_a_pause());
	ck_assert(!can_detach_later(1));
	th->resumed.state = RESUME_NONE;
	ck_assert(capture_prepare_detach(l.capture));
}

/*
 * A target with many threads in resumed calls always has one as long as there are ticks. So ticks
 * pause for a moment.
 */
TEST(ticks_pause_so_that_calls_of_other_targets_end)
{
	struct thread *th = start_other(true);

	remove_it();
	ck_assert(is_in_a_pause());
	live_later(2 * NS_PER_SEC);
	ck_assert(is_in_a_pause());
	live_later(2 * NS_PER_SEC);
	ck_assert(capture_prepare_detach(l.capture));
	ck_assert(!capture_settle(l.capture));
	end_resumed_call(th);
}

/*
 * After 10 s capture waits as at the end of sampling, with its own time limits. No call is cut
 * short before.
 */
TEST(calls_of_other_targets_delay_the_detach_for_10_s_at_most)
{
	(void)start_other(true);
	remove_it();
	ck_assert(is_in_a_pause());
	ck_assert(can_detach_later(10));
	ck_assert(can_detach_later(1));
	ck_assert(!capture_settle(l.capture));
	ck_assert(!is_settled_later(8));
	ck_assert(!l.capture->detaching.all.cut);
	ck_assert(!is_settled_later(8));
	ck_assert(l.capture->detaching.all.cut);
}

/*
 * Removes the second target, whose thread is in a resumed call, this much later than the first one.
 */
static struct thread *remove_another_later(uint64_t seconds)
{
	struct thread *th = start_other(true);

	remove_it();
	ck_assert(is_in_a_pause());
	live_later(seconds * NS_PER_SEC);
	OK(capture_remove(l.capture, OTHER_TARGET));
	ck_assert(!capture_prepare_detach(l.capture));
	return th;
}

/* The other targets have ticks meanwhile, however long the first detaching target has waited. */
TEST(a_target_removed_later_has_its_own_wait)
{
	struct thread *th = remove_another_later(9);

	ck_assert(!can_detach_later(1));
	ck_assert(!can_detach_later(1));
	end_resumed_call(th);
}

/*
 * The wait for targets that are removed later has a limit, because there may always be another one.
 */
TEST(targets_removed_later_delay_the_detach_for_20_s_at_most)
{
	(void)remove_another_later(15);
	ck_assert(can_detach_later(5));
	ck_assert(!capture_settle(l.capture));
}

/*
 * A call of another target whose thread does not move is cut short; otherwise all targets would
 * wait for it first.
 */
TEST(a_call_of_another_target_without_progress_is_cut_short)
{
	struct thread *th = start_other(false);

	remove_it();
	ck_assert(is_in_a_pause());
	ck_assert(!l.capture->detaching.all.cut);
	ck_assert(can_detach_later(2));
	ck_assert(l.capture->detaching.all.cut);
	end_resumed_call(th);
}

TEST(a_leaving_target_that_ends_stops_the_cutting_short)
{
	struct traced_process *t = NULL;

	(void)start_other(false);
	remove_it();
	ck_assert(is_in_a_pause());
	ck_assert(can_detach_later(2));
	FOR_EACH_TARGET (each, l.capture)
		t = each->phase == TRACED_DETACHING ? each : t;
	targets_end(t, TRACED_END_GONE);
	ck_assert(!capture_prepare_detach(l.capture));
	ck_assert(!l.capture->detaching.all.cut);
}

/* A resumed call begins after capture_prepare_detach has returned true. Then there are ticks again.
 */
TEST(a_call_resumed_after_the_last_tick_puts_the_detach_off)
{
	struct thread *th = start_other(true);

	th->resumed.state = RESUME_NONE;
	remove_it();
	ck_assert(capture_prepare_detach(l.capture));
	th->resumed.state = RESUME_INSIDE;
	ck_assert(!capture_settle(l.capture));
	ck_assert(is_in_a_pause());
	ck_assert_uint_eq(l.capture->detaching.all.since_ns, 0);
}

/* Stops of other targets are not awaited: they come by themselves as long as there are ticks. */
TEST(a_stop_of_another_target_does_not_delay_the_detach)
{
	struct thread *th = start_other(true);

	th->resumed.state = RESUME_NONE;
	th->due = DUE_STOP;
	remove_it();
	ck_assert(capture_prepare_detach(l.capture));
	ck_assert(!capture_settle(l.capture));
}
