#include <linux/capability.h>
#include <linux/securebits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/capture/capture.h"
#include "lib/capture/detach.h"
#include "lib/capture/sample.h"
#include "lib/capture/state.h"
#include "tests/unit/capture/live.h"
#include "tests/unit/suite.h"

static struct live l;

/* How many more calls of PTRACE_SEIZE take so long that SIGALRM comes. */
static unsigned int alarms;

/* How many more calls of PTRACE_SEIZE are ended by SIGALRM before they have begun. */
static unsigned int stalls;

/* Raises SIGALRM now, and stops the timer, so that it does not come a second time. */
static void alarm_now(void)
{
	const struct itimerval never = {.it_value.tv_usec = 0};

	(void)setitimer(ITIMER_REAL, &never, NULL);
	(void)raise(SIGALRM);
}

/*
 * Replaces the C library's function. SIGALRM may come at any time in this function, and its handler
 * jumps out of it; the function holds no lock meanwhile.
 */
long ptrace(enum __ptrace_request request, ...)
{
	void *addr, *data;
	va_list list;
	pid_t pid;
	long r;

	va_start(list, request);
	pid = va_arg(list, pid_t);
	addr = va_arg(list, void *);
	data = va_arg(list, void *);
	va_end(list);
	if (request == PTRACE_SEIZE && stalls > 0) {
		stalls--;
		alarm_now();
	}
	if (request != PTRACE_SEIZE || alarms == 0)
		return syscall(SYS_ptrace, request, pid, addr, data);
	if (--alarms % 2 == 0)
		alarm_now();
	r = syscall(SYS_ptrace, request, pid, addr, data);
	alarm_now();
	return r;
}

/* What a test does in the first tracing thread before that thread ends. */
static void (*first_part)(void);

static void *be_first_tracer(void *ctx)
{
	live_begin(&l, "cap_threads", NULL, NULL);
	live_until_blocked(&l, l.pid);
	live_ticks(&l, 3);
	if (first_part != NULL)
		first_part();
	live_settle(&l);
	while (capture_is_detaching(l.capture) && !capture_prepare_detach(l.capture))
		live_wait(&l);
	while (!capture_settle(l.capture))
		live_wait(&l);
	return ctx;
}

/* Runs part in a first tracing thread, which then ends. Afterwards no process is traced. */
static void detach_after(void (*part)(void))
{
	pthread_t thread;

	live_block_signals();
	first_part = part;
	OK(pthread_create(&thread, NULL, be_first_tracer, NULL));
	OK(pthread_join(thread, NULL));
	/* pthread_join(3) returns a moment before the kernel has detached the tracees. */
	while (live_status(l.pid, "TracerPid:") != 0)
		(void)sched_yield();
}

static struct __user_cap_header_struct version = {
	.version = _LINUX_CAPABILITY_VERSION_3,
};
static struct __user_cap_data_struct rights[_LINUX_CAPABILITY_U32S_3];

static void take_rights(void)
{
	OK(syscall(SYS_capget, &version, rights));
}

/*
 * Becomes another user than the target's. Capture mostly is one: it may trace the target, but not
 * signal it.
 */
static void become_another_user(void)
{
	struct __user_cap_data_struct fewer[_LINUX_CAPABILITY_U32S_3];

	OK(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP));
	OK(setresuid(60001, 60001, 60001));
	memcpy(fewer, rights, sizeof(fewer));
	fewer[0].effective &= ~(1u << CAP_KILL);
	OK(syscall(SYS_capset, &version, fewer));
	ck_assert_int_eq(kill(l.pid, 0), -1);
	ck_assert_int_eq(errno, EPERM);
}

static void tear_down(void)
{
	if (rights[0].permitted != 0)
		OK(syscall(SYS_capset, &version, rights));
	live_end(&l);
}

static void start_threads(void)
{
	ck_assert_int_gt(live_ask(&l, "asleep 3", "ok"), 0);
	ck_assert_int_gt(live_ask(&l, "busy 2", "ok"), 0);
	live_ticks(&l, 5);
	ck_assert_uint_eq(l.counters.threads, 6);
}

static void remove_it(void)
{
	start_threads();
	OK(capture_remove(l.capture, LIVE_TARGET));
	ck_assert_int_eq(capture_remove(l.capture, LIVE_TARGET + 1), -ENOENT);
	/* No thread is interrupted for the removed target any more. */
	live_settle(&l);
	live_tick(&l);
	ck_assert_uint_eq(capture_pending(l.capture), 0);
}

FIXTURE(NULL, tear_down)

TEST(the_removed_target_ends_and_its_process_lives_on)
{
	detach_after(remove_it);
	capture_attach_again(l.capture);
	live_read(&l);
	ck_assert_uint_eq(l.gone, 1);
	ck_assert(l.ended);
	ck_assert_uint_eq(l.capture->n_targets, 0);
	ck_assert(!capture_is_detaching(l.capture));
	ck_assert_int_eq(capture_remove(l.capture, LIVE_TARGET), -ENOENT);
	live_check_sum(&l);
	/* The process lives on, unchanged. */
	ck_assert_int_eq(live_status(l.pid, "TracerPid:"), 0);
	ck_assert_int_eq(live_ask(&l, "join", "ok"), 0);
}

static uint64_t samples_of_busy(void)
{
	return l.records[RECORD_SAMPLE];
}

static void check_goes_on(uint64_t threads)
{
	uint64_t before;

	live_ticks(&l, 3);
	before = samples_of_busy();
	live_ticks(&l, 5);
	ck_assert_uint_eq(l.counters.threads, threads);
	ck_assert_uint_gt(samples_of_busy(), before);
	ck_assert_int_eq(live_status(l.pid, "TracerPid:"), gettid());
	ck_assert_uint_eq(l.gone + l.other_tracer, 0);
	ck_assert(!l.ended);
	live_check_sum(&l);
}

static void check_nothing_is_announced_anew(void)
{
	ck_assert_uint_eq(l.records[RECORD_THREAD], 6);
	ck_assert_uint_eq(l.records[RECORD_EXIT], 0);
	ck_assert_uint_eq(l.records[RECORD_EXEC], 0);
	ck_assert_uint_eq(l.records[RECORD_RESET], 0);
}

TEST(other_targets_are_attached_again_unchanged)
{
	detach_after(start_threads);
	capture_attach_again(l.capture);
	check_goes_on(6);
	check_nothing_is_announced_anew();
}

TEST(targets_of_another_user_are_attached_again)
{
	if (geteuid() != 0)
		return;
	take_rights();
	detach_after(start_threads);
	become_another_user();
	capture_attach_again(l.capture);
	check_goes_on(6);
	check_nothing_is_announced_anew();
}

/* SIGALRM comes at every other thread, both before and after the thread is seized. */
TEST(seizing_again_is_repeated_after_its_time_limit)
{
	detach_after(start_threads);
	alarms = 4;
	capture_attach_again(l.capture);
	ck_assert_uint_eq(alarms, 0);
	check_goes_on(6);
	check_nothing_is_announced_anew();
}

/*
 * The leader cannot be seized in all of SEIZE_TRIES tries, or in one more. A later scan finds it,
 * and sees that it is the same leader with the same program.
 */
TESTS(a_leader_that_is_seized_late_has_not_executed, 2)
{
	detach_after(NULL);
	stalls = _i == 0 ? 4 : 5;
	capture_attach_again(l.capture);
	ck_assert_uint_eq(stalls, 0);
	live_ticks(&l, 3);
	ck_assert_uint_eq(l.execs, 0);
	ck_assert_uint_eq(l.records[RECORD_EXEC], 0);
	ck_assert_uint_eq(l.gone, 0);
	ck_assert_uint_eq(l.counters.threads, 1);
	ck_assert_int_eq(live_status(l.pid, "TracerPid:"), gettid());
	live_check_sum(&l);
}

/* A process whose files cannot be opened counts neither as another program nor as ended. */
TEST(without_descriptors_targets_neither_end_nor_execute)
{
	detach_after(start_threads);
	live_take_descriptors();
	alarms = 4;
	capture_attach_again(l.capture);
	live_tick(&l);
	live_give_descriptors();
	ck_assert_uint_eq(l.gone + l.other_tracer, 0);
	live_ticks(&l, 40);
	check_goes_on(6);
	ck_assert_uint_eq(l.execs, 0);
}

TEST(threads_that_start_or_end_without_a_tracer_are_found)
{
	detach_after(start_threads);
	ck_assert_int_eq(live_ask(&l, "join", "ok"), 0);
	ck_assert_int_gt(live_ask(&l, "busy 4", "ok"), 0);
	capture_attach_again(l.capture);
	check_goes_on(5);
	ck_assert_uint_eq(l.records[RECORD_EXIT], 5);
}

TEST(an_exec_without_a_tracer_is_reported)
{
	detach_after(start_threads);
	live_say(&l, "exec");
	ck_assert_int_eq(live_answer(&l, "ready"), l.pid);
	capture_attach_again(l.capture);
	live_until_blocked(&l, l.pid);
	live_ticks(&l, 3);
	ck_assert_uint_eq(l.execs, 1);
	ck_assert_uint_eq(l.records[RECORD_EXEC], 1);
	ck_assert_uint_eq(l.counters.threads, 1);
	live_check_sum(&l);
}

TEST(an_end_without_a_tracer_is_reported)
{
	detach_after(start_threads);
	OK(kill(l.pid, SIGKILL));
	ck_assert_int_eq(waitpid(l.pid, NULL, 0), l.pid);
	capture_attach_again(l.capture);
	live_read(&l);
	ck_assert_uint_eq(l.gone, 1);
	ck_assert(l.ended);
	live_check_sum(&l);
}

TEST(a_target_that_another_tracer_took_is_given_up)
{
	pid_t tracer;

	detach_after(NULL);
	tracer = live_start_tracer(l.pid);
	capture_attach_again(l.capture);
	live_read(&l);
	ck_assert_uint_eq(l.other_tracer, 1);
	ck_assert_uint_eq(l.gone, 0);
	/* The target's session continues: no RECORD_END was written. */
	ck_assert(!l.ended);
	ck_assert_uint_eq(l.capture->n_targets, 0);
	OK(kill(tracer, SIGKILL));
	ck_assert_int_eq(waitpid(tracer, NULL, 0), tracer);
}
