/* Capture detaches from a process before the process runs a handler of a crash signal. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/capture/crash.h"
#include "lib/capture/detach.h"
#include "lib/capture/reap.h"
#include "lib/capture/state.h"
#include "lib/capture/targets.h"
#include "tests/unit/capture/live.h"
#include "tests/unit/suite.h"

static struct live l;

/* The threads that were detached from, in this order. */
static struct {
	pid_t tids[16];
	size_t n;
} detached;

static long (*libc_ptrace)(enum __ptrace_request, pid_t, void *, void *);

/* Not at the first call: the alarm of lib/capture/seize.c may jump out of ptrace(). */
__attribute__((constructor)) static void find_ptrace(void)
{
	*(void **)&libc_ptrace = dlsym(RTLD_NEXT, "ptrace");
}

/* In place of libc's. */
long ptrace(enum __ptrace_request request, ...)
{
	va_list list;
	void *address, *data;
	pid_t tid;

	va_start(list, request);
	tid = va_arg(list, pid_t);
	address = va_arg(list, void *);
	data = va_arg(list, void *);
	va_end(list);
	if (request == PTRACE_DETACH && detached.n < array_size(detached.tids))
		detached.tids[detached.n++] = tid;
	return libc_ptrace(request, tid, address, data);
}

/* The target of a crash, which has eight threads and has had ticks. */
static void begin_timed(void)
{
	memset(&l, 0, sizeof(l));
	l.leaves_crashes = true;
	live_start(&l, "cap_threads", NULL, NULL);
	live_open(&l, 1u << 24);
	live_attach(&l);
	(void)live_ask(&l, "busy 2", "ok");
	(void)live_ask(&l, "asleep 5", "ok");
	live_ticks(&l, 3);
}

/*
 * The clock is stopped: on a slow test machine the stops could take longer than CRASH_STOP_NS, and
 * then capture waits for the end of this thread.
 */
static void begin(void)
{
	begin_timed();
	live_step(0);
}

static void handle(int signal)
{
	char line[32];

	(void)snprintf(line, sizeof(line), "handle %d", signal);
	(void)live_ask(&l, line, "ok");
}

static long raise_signal(int signal)
{
	char line[32];

	(void)snprintf(line, sizeof(line), "raise %d", signal);
	return live_ask(&l, line, "traced");
}

static void tear_down(void)
{
	live_end(&l);
}

FIXTURE(begin, tear_down)

static const int crash_signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};

TESTS(no_thread_is_traced_when_the_handler_runs, array_size(crash_signals))
{
	const int signal = crash_signals[_i];

	handle(signal);
	live_tick(&l);
	ck_assert_int_eq(raise_signal(signal), 0);
	ck_assert_uint_eq(l.crashes, 1);
	ck_assert_int_eq(l.crash.signal, signal);
	ck_assert_uint_eq(l.crash.tid, (uint32_t)l.pid);
	ck_assert(l.crash.blocks_signal);
	ck_assert(!l.crash.awaits_exec);
	/* Capture has forgotten the target, and its reader knows no thread any more. */
	ck_assert_uint_eq(capture_threads(l.capture), 0);
	live_read(&l);
	ck_assert_uint_eq(l.records[RECORD_RESET], 1);
	ck_assert(!l.ended);
	/* The number of threads is kept for the samples that are missed from now on. */
	ck_assert_uint_eq(l.counters.threads, 8);
}

TEST(a_handler_that_does_not_block_its_signal_is_noticed)
{
	(void)live_ask(&l, "nodefer 11", "ok");
	ck_assert_int_eq(raise_signal(SIGSEGV), 0);
	ck_assert_uint_eq(l.crashes, 1);
	ck_assert(!l.crash.blocks_signal);
}

TEST(all_threads_go_on_after_a_crash)
{
	handle(SIGSEGV);
	ck_assert_int_eq(raise_signal(SIGSEGV), 0);
	(void)live_answer(&l, "ok");
	(void)live_ask(&l, "join", "ok");
}

TEST(another_thread_than_the_leader_may_crash)
{
	live_say(&l, "leave");
	(void)live_answer(&l, "ready");
	handle(SIGSEGV);
	ck_assert_int_eq(raise_signal(SIGSEGV), 0);
	ck_assert_uint_eq(l.crashes, 1);
	ck_assert_uint_ne(l.crash.tid, (uint32_t)l.pid);
}

/*
 * The kernel attaches new threads before capture knows of them. Here capture gets only the stops of
 * the thread that crashes, so the new thread's first stop is still pending.
 */
TEST(a_thread_that_was_just_born_is_left_too)
{
	int status;

	handle(SIGSEGV);
	live_say(&l, "born 11");
	while (l.crashes == 0) {
		ck_assert_int_eq(waitpid(l.pid, &status, __WALL), l.pid);
		capture_handle_status(l.capture, (uint32_t)l.pid, status);
	}
	ck_assert_int_eq(live_answer(&l, "traced"), 0);
}

/*
 * While the leader is traced the kernel queues signals that the process ignores, and these end the
 * system calls of threads that are detached.
 */
TEST(the_leader_is_left_first_and_the_crashed_thread_last)
{
	const pid_t tid = (pid_t)live_ask(&l, "busy 1", "ok");

	handle(SIGSEGV);
	live_ticks(&l, 1);
	detached.n = 0;
	ck_assert_int_eq(syscall(SYS_tgkill, l.pid, tid, SIGSEGV), 0);
	ck_assert_int_eq(live_answer(&l, "traced"), 0);
	ck_assert_uint_eq(l.crashes, 1);
	ck_assert_uint_eq(detached.n, 9);
	ck_assert_int_eq(detached.tids[0], l.pid);
	ck_assert_int_eq(detached.tids[8], tid);
}

static const int other_signals[] = {SIGUSR1, SIGQUIT, SIGTERM, SIGCHLD};

TESTS(other_signals_are_no_crash, array_size(other_signals))
{
	handle(other_signals[_i]);
	ck_assert_int_eq(raise_signal(other_signals[_i]), 8);
	ck_assert_uint_eq(l.crashes, 0);
}

TEST(a_signal_without_a_handler_ends_the_traced_process)
{
	handle(SIGBUS);
	live_say(&l, "raise 11");
	while (l.gone == 0)
		live_wait(&l);
	ck_assert_uint_eq(l.crashes, 0);
}

/* An exec may bring a program that does not use the signal in ordinary work. */
TEST(ignored_signals_are_no_crash_until_the_next_exec)
{
	handle(SIGSEGV);
	handle(SIGFPE);
	capture_ignore_crashes(l.capture, LIVE_TARGET, UINT32_C(1) << (SIGSEGV - 1));
	ck_assert_int_eq(raise_signal(SIGSEGV), 8);
	(void)live_answer(&l, "ok");
	ck_assert_uint_eq(l.crashes, 0);
	live_say(&l, "exec");
	(void)live_answer(&l, "ready");
	handle(SIGSEGV);
	ck_assert_int_eq(raise_signal(SIGSEGV), 0);
	ck_assert_uint_eq(l.crashes, 1);
}

TEST(a_removed_target_that_crashes_is_gone)
{
	handle(SIGSEGV);
	OK(capture_remove(l.capture, LIVE_TARGET));
	ck_assert_int_eq(raise_signal(SIGSEGV), 0);
	while (l.gone == 0)
		live_wait(&l);
	ck_assert_uint_eq(l.crashes, 0);
	ck_assert(!capture_is_detaching(l.capture));
}

TEST(a_crash_of_a_program_without_samples_says_so)
{
	capture_await_exec(l.capture, LIVE_TARGET);
	handle(SIGSEGV);
	ck_assert_int_eq(raise_signal(SIGSEGV), 0);
	ck_assert(l.crash.awaits_exec);
}

/*
 * A parent in vfork(2) does not stop. Then the crashed thread is held until the tracing thread has
 * ended, which takes all other threads along.
 */
static void crash_beside_vfork(void)
{
	begin_timed();
	handle(SIGSEGV);
	(void)live_ask(&l, "vforks", "ok");
	live_settle(&l);
	live_say(&l, "raise 11");
	while (!capture_must_detach_now(l.capture) && l.crashes_traced == 0)
		live_wait(&l);
}

static void *be_tracer(void *ctx)
{
	void (*part)(void) = *(void (**)(void))ctx;

	part();
	return NULL;
}

/* Runs part in a tracing thread, which then ends. */
static void trace(void (*part)(void))
{
	pthread_t thread;

	live_block_signals();
	OK(pthread_create(&thread, NULL, be_tracer, &part));
	OK(pthread_join(thread, NULL));
}

FIXTURE(NULL, tear_down)

/*
 * A crash beside an exec of another thread. Returns false if the other thread was held before its
 * exec: then the crash came first.
 */
static bool exec_beside_crash(bool leaderless)
{
	begin();
	if (leaderless) {
		live_say(&l, "leave");
		(void)live_answer(&l, "ready");
	}
	handle(SIGSEGV);
	live_say(&l, "exec 11");
	while (l.execs == 0 && l.crashes == 0)
		live_wait(&l);
	return l.execs > 0;
}

/* The exec kills the crashed thread, which is held, and waits until capture has seen its death. */
TESTS(an_exec_in_another_thread_ends_the_crash, 2)
{
	while (!exec_beside_crash(_i == 1))
		live_end(&l);
	(void)live_answer(&l, "ready");
	ck_assert_uint_eq(l.crashes_traced, 0);
	ck_assert(!capture_must_detach_now(l.capture));
	handle(SIGSEGV);
	ck_assert_int_eq(raise_signal(SIGSEGV), 0);
	ck_assert_uint_eq(l.crashes, 1);
}

TEST(a_thread_that_does_not_stop_is_left_by_the_end_of_the_tracer)
{
	trace(crash_beside_vfork);
	ck_assert(capture_must_detach_now(l.capture));
	/* The kernel has kept the signal of the held thread. */
	ck_assert_int_eq(live_answer(&l, "traced"), 0);
	capture_attach_again(l.capture);
	ck_assert(!capture_must_detach_now(l.capture));
	ck_assert_uint_eq(l.crashes, 1);
	ck_assert_uint_eq(capture_threads(l.capture), 0);
	(void)live_answer(&l, "ok");
	(void)live_ask(&l, "join", "ok");
}

/* The most ends are one in a second, and ten in a minute, for each user. */
TEST(ends_of_the_tracer_are_limited_for_each_user)
{
	struct traced_process *t;

	begin();
	t = live_bare_target(l.capture);
	for (int i = 0; i < CRASHES_A_MINUTE; i++) {
		ck_assert(crash_may_end_tracer(t));
		ck_assert(!crash_may_end_tracer(t));
		live_later(NS_PER_SEC);
	}
	ck_assert(!crash_may_end_tracer(t));
	t->exec.uid = 1000;
	ck_assert(crash_may_end_tracer(t));
	t->exec.uid = 0;
	live_later(50 * NS_PER_SEC);
	ck_assert(crash_may_end_tracer(t));
	targets_free(t);
}

static void crash_too_often(void)
{
	struct traced_process *other;

	begin_timed();
	other = live_bare_target(l.capture);
	/* The limit of a minute: on a slow test machine that of a second could be over. */
	for (int i = 0; i < CRASHES_A_MINUTE; i++) {
		ck_assert(crash_may_end_tracer(other));
		live_later(NS_PER_SEC);
	}
	handle(SIGSEGV);
	(void)live_ask(&l, "vforks", "ok");
	live_settle(&l);
	ck_assert_int_gt(raise_signal(SIGSEGV), 0);
	ck_assert(!capture_must_detach_now(l.capture));
	ck_assert_uint_eq(l.crashes_traced, 1);
	(void)live_ask(&l, "join", "ok");
	targets_free(other);
	live_end(&l);
}

/* The tracing thread ends the target. */
FIXTURE(NULL, NULL)

TEST(the_handler_runs_traced_after_too_many_ends_of_the_tracer)
{
	trace(crash_too_often);
}

static uint64_t clock_ns;

static uint64_t read_clock(void)
{
	return clock_ns;
}

/* A child that computes, or sleeps. */
static pid_t start_child(bool computes)
{
	const pid_t pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			if (!computes)
				(void)pause();
	}
	ck_assert_int_gt(pid, 0);
	return pid;
}

/* On an overloaded machine a thread that was interrupted waits for a processor. */
TESTS(a_thread_that_can_run_is_awaited_longer, 2)
{
	const pid_t pid = start_child(_i == 1);
	struct capture c = {.options.now_ns = read_clock};
	struct thread th = {.tid = (uint32_t)pid};
	struct traced_process t = {.capture = &c, .threads.awake = &th};
	struct activity_place ignored;
	char path[32];
	int proc;

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	proc = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	OK(activity_open(&th.activity, proc, th.tid));
	while (_i == 0 && activity_look(&th.activity, &ignored) != ACTIVITY_BLOCKED)
		live_patience();
	clock_ns = NS_PER_SEC + CRASH_STOP_NS - 1;
	ck_assert(crash_may_wait(&t, NS_PER_SEC, NS_PER_SEC));
	clock_ns++;
	ck_assert_int_eq(crash_may_wait(&t, NS_PER_SEC, NS_PER_SEC), _i == 1);
	th.held.is = true;
	ck_assert(!crash_may_wait(&t, NS_PER_SEC, NS_PER_SEC));
	th.held.is = false;
	clock_ns = NS_PER_SEC + CRASH_HOLD_NS;
	ck_assert(!crash_may_wait(&t, NS_PER_SEC, NS_PER_SEC + CRASH_HOLD_NS));
	activity_close(&th.activity);
	(void)close(proc);
	OK(kill(pid, SIGKILL));
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
