#include <dirent.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/capture/capture.h"
#include "lib/capture/restart/resume.h"
#include "lib/capture/sample.h"
#include "lib/capture/state.h"
#include "tests/unit/capture/live.h"
#include "tests/unit/suite.h"

static struct live l;

/* The number of listings of /proc/PID/task that the replaced readdir() returns as empty. */
static unsigned int empty_listings;

/* Replaces the C library's function, and calls it. */
struct dirent *readdir(DIR *dir)
{
	struct dirent *(*real)(DIR *);
	void *symbol = dlsym(RTLD_NEXT, "readdir");

	if (empty_listings > 0) {
		empty_listings--;
		return NULL;
	}
	memcpy(&real, &symbol, sizeof(real));
	return real(dir);
}

/* The thread that dies while PTRACE_SEIZE waits for it; 0: none. */
static pid_t dies_in_time;

/*
 * Replaces the C library's function. SIGALRM may come at any time in this function, and its handler
 * jumps out of it; the function holds no lock meanwhile.
 */
long ptrace(enum __ptrace_request request, ...)
{
	const struct itimerval never = {.it_value.tv_usec = 0};
	void *addr, *data;
	va_list list;
	pid_t pid;

	va_start(list, request);
	pid = va_arg(list, pid_t);
	addr = va_arg(list, void *);
	data = va_arg(list, void *);
	va_end(list);
	if (request == PTRACE_SEIZE && pid == dies_in_time) {
		(void)setitimer(ITIMER_REAL, &never, NULL);
		dies_in_time = 0;
		live_say(&l, "hidden end");
		while (live_state(pid) != 0)
			live_patience();
		(void)raise(SIGALRM);
	}
	return syscall(SYS_ptrace, request, pid, addr, data);
}

static void threads(void)
{
	live_begin(&l, "cap_threads", NULL, NULL);
}

static void tear_down(void)
{
	live_end(&l);
}

/*
 * Gives ticks until the new program runs and capture has attached to it. Then checks its counters,
 * records and end.
 */
static void check_new_program(void)
{
	for (; l.execs == 0 || l.counters.threads != 1; live_patience())
		live_tick(&l);
	ck_assert_int_eq(live_answer(&l, "ready"), l.pid);
	live_until_blocked(&l, l.pid);
	live_ticks(&l, 3);
	/* An exec is reported twice if the thread was seized at the very end of it. */
	ck_assert_uint_ge(l.execs, 1);
	ck_assert_uint_eq(l.records[RECORD_EXEC], l.execs);
	ck_assert_uint_eq(l.counters.threads, 1);
	ck_assert_int_eq(live_status(l.pid, "TracerPid:"), getpid());
	ck_assert_uint_gt(live_thread(&l, l.pid)->samples, 0);
	live_check_sum(&l);
	close_fd(&l.in);
	while (l.gone == 0)
		live_wait(&l);
	live_check_sum(&l);
}

FIXTURE(NULL, tear_down)

/* A thread that capture does not know calls exec. The traced leader disappears without a report. */
TEST(an_exec_by_an_unknown_thread_is_found)
{
	threads();
	live_ticks(&l, 5);
	live_say(&l, "hidden exec");
	check_new_program();
}

/*
 * Makes an exec that capture does not see: the old leader disappears without a report, and the new
 * one is blocked, so that capture takes it for the old one, and no call fails. asleep: the command
 * that starts other threads, or NULL.
 */
static void exec_unseen(const char *asleep)
{
	live_begin_without_exit(&l, "cap_threads");
	if (asleep != NULL)
		(void)live_ask(&l, asleep, "ok");
	live_ticks(&l, 2);
	live_say(&l, "hidden exec");
	ck_assert_int_eq(live_answer(&l, "ready"), l.pid);
	live_until_blocked(&l, l.pid);
	ck_assert_uint_eq(l.execs, 0);
}

/* Fewer ticks than DOUBT_TICKS of tick.c, after which capture checks for an exec without a sign. */
#define SOON 50

TEST(an_unreported_exec_is_found_by_the_regular_check)
{
	exec_unseen(NULL);
	live_ticks(&l, SOON);
	ck_assert_uint_eq(l.execs, 0);
	live_ticks(&l, 512);
	ck_assert_uint_eq(l.execs, 1);
	ck_assert_int_eq(live_status(l.pid, "TracerPid:"), getpid());
}

/* The new leader runs. Capture interrupts it, which fails and is a sign of an exec. */
TEST(a_failed_interrupt_leads_to_the_check_for_an_exec)
{
	exec_unseen(NULL);
	live_tick_running(&l, live_known(&l, l.pid));
	ck_assert_uint_eq(l.counters.missed[MISSED_EXITED], 1);
	live_ticks(&l, SOON);
	ck_assert_uint_eq(l.execs, 1);
}

/* All other threads have died, perhaps because of an exec. */
TEST(the_death_of_all_other_threads_leads_to_the_check_for_an_exec)
{
	exec_unseen("asleep 2");
	live_ticks(&l, SOON);
	ck_assert_uint_eq(l.execs, 1);
}

/*
 * The exec replaces all threads that capture knows, and the leader was dead before capture
 * attached.
 */
TEST(an_exec_that_replaces_all_known_threads_is_found)
{
	live_prepare_leaderless(&l);
	OK(live_add(&l));
	live_ticks(&l, 5);
	live_say(&l, "hidden exec");
	check_new_program();
}

/*
 * A thread dies while PTRACE_SEIZE waits for it, and SIGALRM comes. That proves nothing about the
 * other threads: a thread in a resumed call stays in it, and gets the sum of its parts.
 */
TEST(a_death_beside_an_alarm_is_no_exec)
{
	struct thread *th;
	pid_t asleep;

	threads();
	asleep = (pid_t)live_ask(&l, "asleep 1", "ok");
	live_until_blocked(&l, asleep);
	live_ticks(&l, 3);
	th = live_known(&l, asleep);
	th->resumed = (struct resumed_call){.state = RESUME_INSIDE, .until_ns = RESUME_NO_LIMIT};
	dies_in_time = (pid_t)live_ask(&l, "hidden wait", "ok");
	th->target->scan.tick = 0;
	live_tick(&l);
	ck_assert_int_eq(dies_in_time, 0);
	live_ticks(&l, 2);
	ck_assert_uint_eq(l.execs, 0);
	ck_assert_uint_eq(l.records[RECORD_EXEC], 0);
	ck_assert_ptr_eq(live_known(&l, asleep), th);
	ck_assert_int_eq(th->resumed.state, RESUME_INSIDE);
	th->resumed = (struct resumed_call){0};
	ck_assert_uint_eq(l.counters.threads, 2);
	live_check_sum(&l);
}

/* The leader is new to capture, but it is the process's first leader, so no exec has happened. */
TEST(a_leader_attached_to_late_has_not_executed)
{
	pid_t tid, tracer;

	live_prepare(&l);
	tid = (pid_t)live_ask(&l, "asleep 1", "ok");
	tracer = live_start_tracer(l.pid);
	OK(live_add(&l));
	live_ticks(&l, 3);
	ck_assert_uint_eq(l.counters.threads, 1);
	live_known(&l, tid)->resumed =
		(struct resumed_call){.state = RESUME_INSIDE, .until_ns = RESUME_NO_LIMIT};
	OK(kill(tracer, SIGKILL));
	ck_assert_int_eq(waitpid(tracer, NULL, 0), tracer);
	for (; l.counters.threads < 2; live_patience())
		live_ticks(&l, 1);
	ck_assert_uint_eq(l.execs, 0);
	ck_assert_int_eq(live_known(&l, tid)->resumed.state, RESUME_INSIDE);
	live_known(&l, tid)->resumed = (struct resumed_call){0};
	live_check_sum(&l);
}

/*
 * While capture has no descriptors, it cannot tell whether an exec has happened. It checks again
 * until it can.
 */
TEST(the_check_for_an_exec_is_repeated_until_it_succeeds)
{
	exec_unseen("asleep 2");
	live_take_descriptors();
	live_tick(&l);
	live_tick(&l);
	ck_assert_uint_eq(l.execs, 0);
	ck_assert_uint_eq(l.gone, 0);
	live_give_descriptors();
	live_ticks(&l, SOON);
	ck_assert_uint_eq(l.execs, 1);
	ck_assert_int_eq(live_status(l.pid, "TracerPid:"), getpid());
}

/*
 * A deadlock that capture must avoid: the exec waits until capture has reaped the other threads,
 * and PTRACE_SEIZE of the thread that calls exec waits for the exec.
 */
TEST(capture_does_not_wait_for_an_exec_that_waits_for_capture)
{
	const struct sigaction ignored = {.sa_handler = SIG_IGN};
	struct sigaction action;
	sigset_t alarm, mask;
	pid_t tid;

	threads();
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	OK(sigprocmask(SIG_BLOCK, &alarm, NULL));
	OK(sigaction(SIGALRM, &ignored, NULL));
	tid = (pid_t)live_ask(&l, "asleep 5", "ok");
	live_ticks(&l, 5);
	live_say(&l, "hidden exec");
	live_until_state(NULL, tid, 'Z');
	live_until_state(NULL, l.pid, 't');
	/* A scan at the next tick, which comes before the dead threads are reaped. */
	live_known(&l, tid)->target->scan.tick = 0;
	live_tick(&l);
	/* Capture has restored the caller's handler and mask of SIGALRM. */
	OK(sigaction(SIGALRM, NULL, &action));
	ck_assert(action.sa_handler == SIG_IGN);
	OK(sigprocmask(SIG_BLOCK, NULL, &mask));
	ck_assert_int_eq(sigismember(&mask, SIGALRM), 1);
	check_new_program();
}

/*
 * An exec has just replaced the leader, and the kernel's listing ends at the old one. Capture
 * repeats the listing.
 */
TEST(an_empty_listing_of_threads_is_repeated)
{
	live_prepare(&l);
	empty_listings = 2;
	OK(live_add(&l));
	ck_assert_uint_eq(l.counters.threads, 1);
	ck_assert_uint_eq(empty_listings, 0);
	live_ticks(&l, 2);
	ck_assert_uint_eq(l.gone, 0);
}

TEST(a_process_in_the_middle_of_an_exec_is_added)
{
	pid_t tid, tracer;

	live_prepare(&l);
	tid = (pid_t)live_ask(&l, "asleep 1", "ok");
	tracer = live_start_tracer(tid);
	live_say(&l, "hidden exec");
	live_until_state(NULL, tid, 'Z');
	/* With time standing still, the scan does not end because of its time limit. */
	live_step(0);
	OK(live_add(&l));
	ck_assert_uint_eq(l.counters.threads, 0);
	/* Capture repeats the scan, at growing distances, */
	live_ticks(&l, 20);
	ck_assert_uint_eq(l.capture->targets->target->scan.held_up_ticks, 16);
	/* which are limited, so that the scan finds the thread after the exec. */
	live_ticks(&l, 600);
	ck_assert_uint_eq(l.capture->targets->target->scan.held_up_ticks, 128);
	ck_assert_uint_eq(l.gone, 0);
	ck_assert_uint_eq(l.counters.threads, 0);
	ck_assert_uint_eq(l.counters.expected, 0);
	OK(kill(tracer, SIGKILL));
	ck_assert_int_eq(waitpid(tracer, NULL, 0), tracer);
	ck_assert_int_eq(live_answer(&l, "ready"), l.pid);
	for (; l.counters.threads == 0; live_patience())
		live_tick(&l);
	live_until_blocked(&l, l.pid);
	live_ticks(&l, 3);
	ck_assert_uint_gt(live_thread(&l, l.pid)->samples, 0);
	live_check_sum(&l);
}

/* All threads that capture knows are dead. The one that calls exec waits for another tracer. */
TEST(an_exec_that_waits_for_another_tracer_is_not_an_end)
{
	pid_t tid, tracer;

	live_prepare_leaderless(&l);
	tid = (pid_t)live_ask(&l, "asleep 1", "ok");
	tracer = live_start_tracer(tid);
	OK(live_add(&l));
	live_ticks(&l, 3);
	ck_assert_uint_eq(l.counters.threads, 1);
	live_say(&l, "hidden exec");
	live_until_state(NULL, tid, 'Z');
	for (; l.counters.threads > 0; live_patience())
		live_tick(&l);
	live_ticks(&l, 20);
	ck_assert_uint_eq(l.gone, 0);
	OK(kill(tracer, SIGKILL));
	check_new_program();
}

/* A process that is killed during its exec ends like any other. */
TEST(a_process_killed_during_its_exec_ends)
{
	pid_t tid, tracer;
	int status;

	live_prepare(&l);
	tid = (pid_t)live_ask(&l, "asleep 1", "ok");
	tracer = live_start_tracer(tid);
	live_say(&l, "hidden exec");
	live_until_state(NULL, tid, 'Z');
	OK(live_add(&l));
	OK(kill(l.child, SIGKILL));
	OK(kill(tracer, SIGKILL));
	ck_assert_int_eq(waitpid(tracer, NULL, 0), tracer);
	/*
	 * In the daemon, the target is the child of another process, and capture gets no status of
	 * it.
	 */
	do
		ck_assert_int_eq(waitpid(l.child, &status, 0), l.child);
	while (WIFSTOPPED(status) && ptrace(PTRACE_CONT, l.child, NULL, NULL) == 0);
	for (; l.gone == 0; live_patience())
		live_tick(&l);
	ck_assert(l.ended);
	live_check_sum(&l);
}

/*
 * Returns true if the scan was put off in the middle of the threads. Returns false if PTRACE_SEIZE
 * has reached its own time limit, because of an exec or because the test got no processor.
 */
static bool was_put_off(void)
{
	return l.capture->targets->target->scan.pass.dir != NULL;
}

/* FIRSTS_MAX of tick.c: threads that get their first sample at one tick. */
#define FIRSTS 64

static uint64_t waiting(void)
{
	uint64_t n = 0;

	for (size_t i = 0; i < l.capture->threads.n_by_index; i++)
		n += l.capture->threads.by_index[i]->life == THREAD_AWAITS_TURN;
	return n;
}

/*
 * A scan of many threads pauses, so that other targets have their ticks. Returns false if
 * PTRACE_SEIZE spoiled the attempt.
 */
static bool scan_pauses(void)
{
	uint64_t first, second;

	live_prepare(&l);
	(void)live_ask(&l, "asleep 400", "ok");
	live_step(NS_PER_MS);
	OK(live_add(&l));
	if (!was_put_off())
		return false;
	first = l.counters.threads;
	ck_assert_uint_gt(first, 1);
	ck_assert_uint_lt(first, 401);
	/* A tick is 10 ms. The scan goes on at the second tick, for a much shorter time. */
	live_ticks(&l, 1);
	ck_assert_uint_eq(l.counters.threads, first);
	live_ticks(&l, 1);
	if (!was_put_off())
		return false;
	second = l.counters.threads - first;
	ck_assert_uint_gt(second, 0);
	ck_assert_uint_lt(4 * second, first);
	live_step(0);
	/* These threads existed before capture attached, too, so they wait for their turn. */
	for (; l.counters.threads < 401; live_patience())
		live_ticks(&l, 1);
	ck_assert_uint_ge(waiting() + l.tick * FIRSTS, 401);
	return true;
}

TEST(a_long_scan_pauses_for_the_ticks_of_others)
{
	int n = 1;

	for (; !scan_pauses(); n++) {
		ck_assert_int_lt(n, 20);
		live_end(&l);
	}
}

TEST(attaching_to_many_threads_renews_the_heartbeat)
{
	uint64_t beat;

	live_prepare(&l);
	(void)live_ask(&l, "asleep 300", "ok");
	ck_assert_uint_eq(l.beat.time_ns, 0);
	OK(live_add(&l));
	beat = l.beat.time_ns;
	ck_assert_uint_gt(beat, 0);
	for (; l.counters.threads < 301; live_patience())
		live_tick(&l);
	/* A tick of many threads renews the heartbeat, too. */
	capture_reset(l.capture, &l.sink);
	beat = l.beat.time_ns;
	live_tick(&l);
	ck_assert_uint_gt(l.beat.time_ns, beat);
}
