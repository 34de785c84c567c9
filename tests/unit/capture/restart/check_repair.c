#include "lib/capture/restart/repair.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/falloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/capture/thread.h"
#include "tests/unit/capture/live.h"
#include "tests/unit/suite.h"

/* How often one wait is interrupted. */
#define INTERRUPTS 300

static struct live l;

static void waiting(const char *call, const char *us)
{
	live_begin(&l, "cap_waits", call, us);
	/* Makes the program run between its waits, so that ticks find it running. */
	if (us != NULL)
		(void)live_ask(&l, "runs", "ok");
}

static void tear_down(void)
{
	live_end(&l);
}

/*
 * Checks that no call was rewritten. Under a seccomp filter, as in a container, capture also
 * restarts calls that the kernel would continue by restart_syscall(2)
 * (lib/capture/restart/syscalls.h).
 */
static void assert_not_rewritten(const char *call)
{
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 0)
		ck_assert_msg(l.counters.rewritten == 0, "%s", call);
}

/* Waits until n more stops were handled. */
static void until_stopped(uint64_t before, uint64_t n)
{
	while (l.counters.event_stops + l.counters.stops < before + n)
		live_wait(&l);
}

static uint64_t stops(void)
{
	return l.counters.event_stops + l.counters.stops;
}

/*
 * Interrupts the wait once, as capture does: it knows that a stop is due. A wait with a timeout
 * also stops on its way back into the call.
 */
static void interrupt_once(void)
{
	uint64_t before;

	live_until_state(&l, l.first, 'S');
	before = stops();
	live_known(&l, l.first)->due = DUE_STOP;
	OK(ptrace(PTRACE_INTERRUPT, l.first, NULL, NULL));
	until_stopped(before, 1);
	live_until_state(&l, l.first, 'S');
}

FIXTURE(NULL, tear_down)

/* All kinds of waits, and whether the result of the interrupted call is rewritten. */
static const struct {
	const char *call;
	bool rewritten;
} waits[] = {
#ifdef SYS_epoll_wait
	{"epoll_wait", true},
	{"poll", false},
	{"select", false},
#endif
	{"epoll_pwait", true},
	{"epoll_pwait2", true},
	{"ppoll", false},
	{"ppoll_read_only", true},
	{"pselect", false},
	{"pselect_read_only", true},
	{"nanosleep", false},
	{"clock_nanosleep", false},
	{"clock_nanosleep_absolute", false},
	{"sigtimedwait", true},
	{"semtimedop", true},
	{"mq_timedreceive", false},
	{"mq_timedsend", false},
	{"recv_timeout", true},
	{"recvmsg_timeout", true},
	{"recvmmsg_timeout", true},
	{"read_timeout", true},
	{"readv_timeout", true},
	{"preadv2_timeout", true},
	{"send_timeout", true},
	{"sendmsg_timeout", true},
	{"sendmmsg_timeout", true},
	{"write_timeout", true},
	{"writev_timeout", true},
	{"pwritev2_timeout", true},
	{"accept_timeout", true},
	{"connect_timeout", true},
	{"sendfile_timeout", true},
	{"splice_timeout", true},
	{"splice_in_timeout", true},
	{"futex", false},
	{"futex_waitv", false},
	{"cond_timedwait", false},
	{"mutex_timedlock", false},
	{"sem_timedwait", false},
	{"io_getevents", true},
	{"io_pgetevents", ARCH_RESULT_RESTARTS},
	{"io_uring_enter", true},
	{"timerfd", false},
	{"wait4", false},
	{"waitid", false},
	{"read_pipe", false},
	{"readv_pipe", false},
	{"write_pipe", false},
	{"read_tty", false},
	{"recv", false},
	{"poll_woken", false},
	{"select_woken", false},
	{"epoll_woken", true},
	{"epoll_woken_timed", true},
	{"eventfd", false},
	{"inotify", false},
	{"signalfd", false},
	{"sigwaitinfo", true},
	{"pause", false},
	{"sigsuspend", false},
	{"semop", true},
	{"msgrcv", false},
	{"msgsnd", false},
	{"mq_receive", false},
	{"mq_send", false},
	{"accept", false},
	{"flock", false},
	{"record_lock", false},
	{"cond", false},
	{"sem", false},
	{"splice_pipe", false},
	{"tee", false},
	{"open_fifo", false},
};

TESTS(interrupts_end_no_kind_of_wait, array_size(waits))
{
	waiting(waits[_i].call, NULL);
	/* Before Linux 6.5 these two do not wait for a full stream of AF_UNIX. */
	if (live_count(&l, "other") > 0 && (strcmp(waits[_i].call, "sendfile_timeout") == 0 ||
					    strcmp(waits[_i].call, "splice_timeout") == 0))
		return;
	for (int i = 0; i < INTERRUPTS; i++)
		interrupt_once();
	live_until_blocked(&l, l.first);
	ck_assert_msg(live_count(&l, "eintr") == 0, "%s: EINTR", waits[_i].call);
	ck_assert_msg(live_count(&l, "other") == 0, "%s has ended", waits[_i].call);
	if (waits[_i].rewritten)
		ck_assert_msg(l.counters.rewritten > 0, "%s", waits[_i].call);
	else
		assert_not_rewritten(waits[_i].call);
}

static const struct {
	const char *call;
	const char *us;
	uint64_t hits; /* interrupts that must meet a wait */
} races[] = {
	{"epoll_pwait2", "50", 30}, {"epoll_pwait", "1000", 3},	 {"semtimedop", "50", 30},
	{"sigtimedwait", "50", 30}, {"recv_timeout", "1000", 3},
};

/* A tick finds the thread running, and its interrupt comes when the thread waits. */
TESTS(a_tick_ends_no_wait, array_size(races))
{
	waiting(races[_i].call, races[_i].us);
	while (l.counters.rewritten < races[_i].hits) {
		live_tick(&l);
		live_settle(&l);
		live_patience();
	}
	ck_assert_int_eq(live_count(&l, "eintr"), 0);
	ck_assert_int_gt(live_count(&l, "other"), 0);
	live_check_sum(&l);
}

/* Signals that wake a traced thread, and that an untraced one does not notice. */
static const int ignored[] = {SIGCHLD, SIGWINCH, SIGURG, SIGCONT, SIGTSTP};

TESTS(an_ignored_signal_ends_no_wait, array_size(ignored))
{
	waiting("epoll_pwait", NULL);
	for (int i = 0; i < INTERRUPTS; i++) {
		uint64_t before = stops();

		live_until_blocked(&l, l.first);
		OK(syscall(SYS_tgkill, l.pid, l.first, ignored[_i]));
		/* SIGCONT stops both threads before it is delivered. */
		until_stopped(before, ignored[_i] == SIGCONT ? 3 : 1);
	}
	live_until_blocked(&l, l.first);
	ck_assert_int_eq(live_count(&l, "eintr"), 0);
	ck_assert_int_eq(live_count(&l, "other"), 0);
}

TEST(a_handler_that_runs_ends_the_wait)
{
	waiting("epoll_pwait", NULL);
	for (int i = 1; i <= INTERRUPTS; i++) {
		live_until_blocked(&l, l.first);
		/* The signal and the interrupt come at the same time, in either order. */
		if (i % 3 == 0)
			(void)ptrace(PTRACE_INTERRUPT, l.first, NULL, NULL);
		OK(kill(l.pid, SIGUSR1));
		if (i % 3 == 1)
			(void)ptrace(PTRACE_INTERRUPT, l.first, NULL, NULL);
		while (live_count(&l, "handled") < i)
			live_patience();
		while (live_count(&l, "eintr") < i)
			live_patience();
	}
	live_until_blocked(&l, l.first);
	ck_assert_int_eq(live_count(&l, "handled"), INTERRUPTS);
	ck_assert_int_eq(live_count(&l, "eintr"), INTERRUPTS);
	ck_assert_int_eq(live_count(&l, "other"), 0);
}

/*
 * The filter, which is installed long after capture attached, would kill the process at a
 * restart_syscall(2). aarch64: a known exception (docs/SAFETY.md).
 */
TEST_IF(under_a_filter_no_restart_syscall_is_made, ARCH_RESULT_RESTARTS)
{
	long ended;

	waiting("poll", "1000");
	live_ticks(&l, 1);
	/*
	 * A wait that was interrupted without a filter goes on in restart_syscall(2), perhaps only
	 * after the filter was installed.
	 */
	ended = live_count(&l, "other");
	while (live_count(&l, "other") < ended + 2)
		live_patience();
	(void)live_ask(&l, "filter", "ok");
	for (; l.counters.rewritten < 100; live_patience())
		interrupt_once();
	ck_assert_int_eq(live_count(&l, "eintr"), 0);
	ck_assert_uint_eq(l.gone, 0);
}

TEST(without_an_interrupted_call_nothing_is_repaired)
{
	struct arch_regs regs;

	/* The registers show no call, so the kernel is not asked. */
	memset(&regs, 0, sizeof(regs));
#if defined(__x86_64__)
	regs.orig_rax = UINT64_MAX;
	regs.rax = (unsigned long long)-EINTR;
#endif
	ck_assert(!repair_call(0, &regs, 0));
	waiting("pause", NULL);
}

#if defined(__x86_64__)

FIXTURE(NULL, NULL)

/* Calls that have moved data or changed the kernel's state are not repeated. */
TEST(calls_that_had_an_effect_are_not_repeated)
{
	const struct {
		long nr, result;
		uint64_t arguments[2];
		bool alone;
	} kinds[] = {
		{SYS_bpf, -EAGAIN, {BPF_PROG_LOAD}, true},
		{SYS_bpf, -EINTR, {BPF_PROG_LOAD}, false},
		{SYS_bpf, -EAGAIN, {BPF_PROG_TEST_RUN}, false},
		{SYS_bpf, 7, {BPF_PROG_LOAD}, false},
		{SYS_fallocate, -EINTR, {3, 0}, true},
		{SYS_fallocate, -EINTR, {3, FALLOC_FL_KEEP_SIZE}, true},
		{SYS_fallocate, -EINTR, {3, FALLOC_FL_INSERT_RANGE}, false},
		{SYS_fallocate, 0, {3, 0}, false},
		{SYS_epoll_wait, -EINTR, {3, 0}, false},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct arch_regs regs = {
			.orig_rax = (unsigned long long)kinds[i].nr,
			.rax = (unsigned long long)kinds[i].result,
			.rdi = kinds[i].arguments[0],
			.rsi = kinds[i].arguments[1],
		};

		ck_assert_msg(repair_needs_undisturbed(&regs) == kinds[i].alone, "call %zu", i);
		if (kinds[i].alone)
			ck_assert(!repair_is_due(0, &regs, 0));
	}
}

/* Numbers of linux/io_uring.h, which has not all of them on old systems. */
#define UNREGISTER_BUFFERS  1
#define UNREGISTER_FILES    3
#define SYNC_CANCEL	    24
#define USE_REGISTERED_RING (1U << 31)

TEST(an_io_uring_register_that_waits_is_repeated)
{
	const struct {
		unsigned int operation;
		long result;
		bool due;
	} kinds[] = {
		{UNREGISTER_BUFFERS, -EINTR, true},
		{UNREGISTER_FILES, -EINTR, true},
		{UNREGISTER_FILES | USE_REGISTERED_RING, -EINTR, true},
		{UNREGISTER_FILES, 0, false},
		{UNREGISTER_FILES, -ENXIO, false},
		{SYNC_CANCEL, -EINTR, false},
		{SYNC_CANCEL | USE_REGISTERED_RING, -EINTR, false},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const struct arch_regs regs = {
			.orig_rax = SYS_io_uring_register,
			.rax = (unsigned long long)kinds[i].result,
			.rdi = 3,
			.rsi = kinds[i].operation,
		};

		ck_assert_msg(repair_is_due(0, &regs, 0) == kinds[i].due, "call %zu", i);
	}
}

/* Whether an ioctl that returned EINTR has had no effect. */
TEST(ioctls_that_drain_a_terminal_are_repeated)
{
	const struct {
		unsigned int request;
		uint64_t argument;
		bool of_any, of_pty;
	} kinds[] = {
		{TIOCSBRK, 0, true, true},     {TIOCSETD, 8, true, true},
		{TCSBRK, 1, true, true},       {TCSBRK, 0, false, true},
		{TCSBRKP, 1, false, true},     {TCSBRKP, 0, false, true},
		{TIOCCBRK, 0, false, false},   {TIOCSTI, 8, false, false},
		{TIOCMIWAIT, 0, false, false},
	};
	const uint32_t us = (uint32_t)getpid();
	int pty = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

	ck_assert_int_ge(pty, 0);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct arch_regs regs = {
			.orig_rax = SYS_ioctl,
			.rax = (unsigned long long)-EINTR,
			.rdi = UINT32_MAX,
			.rsi = kinds[i].request,
			.rdx = kinds[i].argument,
		};

		ck_assert_msg(repair_is_due(us, &regs, 0) == kinds[i].of_any, "ioctl %zu", i);
		regs.rdi = (unsigned long long)pty;
		ck_assert_msg(repair_is_due(us, &regs, 0) == kinds[i].of_pty,
			      "ioctl %zu of a pseudoterminal", i);
	}
	(void)close(pty);
}

#endif
