#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/capture/ptrace/arch.h"
#include "lib/capture/state.h"
#include "lib/capture/tracees.h"
#include "tests/unit/capture/live.h"
#include "tests/unit/suite.h"

static struct live l;

static void tear_down(void)
{
	live_end(&l);
}

/* Starts a parent that reports what it sees of its child. The child is the target. */
static void child_of_another(void)
{
	memset(&l, 0, sizeof(l));
	live_start(&l, "cap_parent", NULL, NULL);
	l.pid = l.first;
	close_fd(&l.pidfd);
	l.pidfd = (int)syscall(SYS_pidfd_open, l.pid, 0);
	live_open(&l, 1u << 24);
	OK(live_add(&l));
}

FIXTURE(NULL, tear_down)

TEST(the_parent_sees_a_stop_and_its_end)
{
	child_of_another();
	for (int i = 0; i < 20; i++) {
		int signal = i % 2 == 0 ? SIGSTOP : SIGTSTP;
		uint64_t before = l.counters.event_stops;

		(void)live_ask(&l, "", "alive");
		live_tick(&l);
		OK(kill(l.pid, signal));
		ck_assert_int_eq(live_answer(&l, "stopped"), signal);
		/* Ticks do not wake the stopped child, not even by interrupts. */
		live_ticks(&l, 3);
		ck_assert_int_eq(live_state(l.pid), 't');
		OK(kill(l.pid, SIGCONT));
		(void)live_answer(&l, "continued");
		/*
		 * Four stops: SIGSTOP, the group-stop, SIGCONT, and the notice of the group-stop's
		 * end.
		 */
		while (l.counters.event_stops < before + 4)
			live_wait(&l);
		(void)live_ask(&l, "", "alive");
	}
	live_settle(&l);
	live_check_sum(&l);
	close_fd(&l.in);
	ck_assert_int_eq(live_answer(&l, "exited"), 3);
}

TEST(a_stopped_process_stays_stopped_when_capture_attaches)
{
	child_of_another();
	live_end(&l);
	memset(&l, 0, sizeof(l));
	live_start(&l, "cap_parent", NULL, NULL);
	l.pid = l.first;
	close_fd(&l.pidfd);
	l.pidfd = (int)syscall(SYS_pidfd_open, l.pid, 0);
	OK(kill(l.pid, SIGSTOP));
	ck_assert_int_eq(live_answer(&l, "stopped"), SIGSTOP);
	live_open(&l, 1u << 24);
	OK(live_add(&l));
	while (l.counters.event_stops == 0)
		live_wait(&l);
	live_ticks(&l, 5);
	ck_assert_int_eq(live_state(l.pid), 't');
	ck_assert_uint_eq(l.counters.stops, 0);
	live_check_sum(&l);
	OK(kill(l.pid, SIGCONT));
	(void)live_answer(&l, "continued");
	(void)live_ask(&l, "", "alive");
}

/* SIGKILL ends a stopped process, whose threads have had ticks and interrupts. */
TEST(a_stopped_process_can_be_killed)
{
	child_of_another();
	OK(kill(l.pid, SIGSTOP));
	ck_assert_int_eq(live_answer(&l, "stopped"), SIGSTOP);
	live_ticks(&l, 2);
	OK(kill(l.pid, SIGKILL));
	ck_assert_int_eq(live_answer(&l, "killed"), SIGKILL);
	while (l.gone == 0)
		live_wait(&l);
	live_check_sum(&l);
}

TEST(all_threads_stop_and_go_on)
{
	live_begin(&l, "cap_threads", NULL, NULL);
	(void)live_ask(&l, "busy 3", "ok");
	(void)live_ask(&l, "asleep 2", "ok");
	for (int i = 0; i < 10; i++) {
		live_tick(&l);
		OK(kill(l.pid, SIGSTOP));
		/*
		 * This holds whichever of the six threads takes the signal, and whichever is
		 * interrupted.
		 */
		live_until_state(&l, l.pid, 't');
		live_settle(&l);
		live_ticks(&l, 2);
		ck_assert_int_eq(live_state(l.pid), 't');
		OK(kill(l.pid, SIGCONT));
		ck_assert_int_gt(live_ask(&l, "asleep 1", "ok"), 0);
		live_settle(&l);
		live_check_sum(&l);
	}
	ck_assert_int_eq(live_ask(&l, "join", "ok"), 0);
}

TEST(each_signal_is_delivered_once)
{
	live_begin(&l, "cap_waits", "epoll_pwait2", "50");
	(void)live_ask(&l, "runs", "ok");
	for (int i = 1; i <= 300; i++) {
		live_tick(&l);
		OK(kill(l.pid, SIGUSR1));
		live_tick(&l);
		while (live_count(&l, "handled") < i)
			live_patience();
	}
	live_settle(&l);
	ck_assert_int_eq(live_count(&l, "handled"), 300);
	live_check_sum(&l);
}

static void stop_and_go_on(bool traced)
{
	live_until_state(&l, l.first, 'S');
	live_until_blocked(&l, l.first);
	OK(kill(l.pid, SIGSTOP));
	live_until_state(&l, l.first, traced ? 't' : 'T');
	live_until_state(&l, l.pid, traced ? 't' : 'T');
	/* Ticks do not turn the group-stop into another stop. */
	if (traced)
		live_ticks(&l, 2);
	OK(syscall(SYS_tgkill, l.pid, l.first, SIGCONT));
}

/* SIGSTOP and SIGCONT end an epoll_wait(2) with EINTR (signal(7)), with and without capture. */
TEST(a_group_stop_ends_a_wait_as_without_capture)
{
	memset(&l, 0, sizeof(l));
	live_start(&l, "cap_waits", "epoll_pwait", NULL);
	stop_and_go_on(false);
	while (live_count(&l, "eintr") < 1)
		live_patience();
	live_open(&l, 1u << 24);
	OK(live_add(&l));
	stop_and_go_on(true);
	while (live_count(&l, "eintr") < 2)
		live_patience();
	live_until_blocked(&l, l.first);
	ck_assert_int_eq(live_count(&l, "eintr"), 2);
}

/* The effect of the group-stop ends with the next wait. */
TEST(waits_after_a_group_stop_are_repaired_again)
{
	live_begin(&l, "cap_waits", "epoll_pwait", NULL);
	stop_and_go_on(true);
	while (live_count(&l, "eintr") < 1)
		live_patience();
	live_until_blocked(&l, l.first);
	live_ticks(&l, 2);
	for (int i = 0; i < 20; i++) {
		uint64_t before = l.counters.event_stops;

		live_until_blocked(&l, l.first);
		OK(syscall(SYS_tgkill, l.pid, l.first, SIGWINCH));
		while (l.counters.event_stops == before)
			live_wait(&l);
	}
	live_until_blocked(&l, l.first);
	ck_assert_int_eq(live_count(&l, "eintr"), 1);
}

/*
 * A signal right after the stop is repaired even without a tick in between. Example: a shell
 * continues a job after the window's size has changed.
 */
TEST(a_signal_right_after_a_group_stop_is_repaired_without_a_tick)
{
	live_begin(&l, "cap_waits", "epoll_pwait", NULL);
	for (int i = 1; i <= 5; i++) {
		uint64_t before;

		stop_and_go_on(true);
		while (live_count(&l, "eintr") < i)
			live_patience();
		live_until_blocked(&l, l.first);
		before = l.counters.event_stops;
		OK(syscall(SYS_tgkill, l.pid, l.first, SIGWINCH));
		while (l.counters.event_stops == before)
			live_wait(&l);
		live_until_blocked(&l, l.first);
		ck_assert_int_eq(live_count(&l, "eintr"), i);
	}
}

/* Capture takes the thread for a new one, and its process is stopped. */
TEST(a_new_thread_of_a_stopped_process_stays_stopped)
{
	pid_t tid;

	live_begin(&l, "cap_threads", NULL, NULL);
	tid = (pid_t)live_ask(&l, "busy 1", "ok");
	live_ticks(&l, 1);
	tracees_remove(tracees_find(l.capture, (uint32_t)tid), MISSED_EXITED);
	OK(kill(l.pid, SIGSTOP));
	/* The thread is in the table again as soon as its stop is handled. */
	while (tracees_find(l.capture, (uint32_t)tid) == NULL)
		live_wait(&l);
	live_until_state(&l, tid, 't');
	live_ticks(&l, 3);
	ck_assert_int_eq(live_state(tid), 't');
	OK(kill(l.pid, SIGCONT));
	live_until_state(&l, tid, 'R');
	ck_assert_int_eq(live_ask(&l, "join", "ok"), 0);
}
