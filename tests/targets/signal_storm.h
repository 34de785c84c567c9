/*
 * What the threads of life_signal_storm.c do, and the handlers of their
 * signals.
 */
#ifndef TESTS_TARGETS_SIGNAL_STORM_H
#define TESTS_TARGETS_SIGNAL_STORM_H

#include "life.h"

#include <poll.h>
#include <setjmp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <ucontext.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define TO_THREAD  (SIGRTMIN + 3)
#define TO_PROCESS (SIGRTMIN + 4)
#define BY_TIMER   (SIGRTMIN + 5)

#define INTERVAL_NS UINT64_C(1000000)
#define IN_FLIGHT   32
#define N_MAX	    1000000

enum role {
	TAKES_QUEUED,
	TAKES_SHARED,
	TAKES_SHARED_TOO,
	JUMPS_OUT,
	FAULTS,
	READS,
	WAITS_IN_EPOLL,
	WAITS_IN_POLL,
	WAITS_IN_RECV,
	WAITS_IN_SLEEP,
	WAITS_FOR_A_SIGNAL,
	ROLES
};

/* With the process that sends. */
static struct {
	atomic_uint queued, shared; /* that have arrived */
	atomic_bool ready, done;
	pid_t tids[ROLES];
} * common;

static pid_t sender;
static atomic_uchar arrived[N_MAX]; /* by the value of the shared ones */
static atomic_ulong profs;
static int pipes[2], sockets[2];

/* Of this thread: how often a handler has run. */
static _Thread_local volatile unsigned long handled;
static _Thread_local volatile uint64_t armed_ns, expirations, behind, faults;
static _Thread_local volatile sig_atomic_t may_jump;
static _Thread_local sigjmp_buf out;

static void check_sender(const siginfo_t *info, int code)
{
	if (info->si_code != code || info->si_pid != sender ||
	    info->si_uid != getuid())
		wrong("signal %d: si_code %d, si_pid %d", info->si_signo,
		      info->si_code, info->si_pid);
}

static void on_queued(int signal, siginfo_t *info, void *unused)
{
	(void)unused;
	handled = handled + 1;
	check_sender(info, SI_QUEUE);
	if (!on_altstack(&signal))
		wrong("signal %d: on the wrong stack", signal);
	if ((unsigned)info->si_value.sival_int != atomic_load(&common->queued))
		wrong("value %d at place %u", info->si_value.sival_int,
		      atomic_load(&common->queued));
	atomic_fetch_add(&common->queued, 1);
}

static void on_shared(int signal, siginfo_t *info, void *unused)
{
	(void)signal;
	(void)unused;
	handled = handled + 1;
	check_sender(info, SI_QUEUE);
	if (atomic_fetch_add(&arrived[info->si_value.sival_int], 1) != 0)
		wrong("value %d comes twice", info->si_value.sival_int);
	atomic_fetch_add(&common->shared, 1);
}

static void on_plain(int signal, siginfo_t *info, void *unused)
{
	(void)signal;
	(void)unused;
	handled = handled + 1;
	check_sender(info, SI_TKILL);
}

static void on_prof(int signal, siginfo_t *info, void *unused)
{
	(void)signal;
	(void)unused;
	handled = handled + 1;
	atomic_fetch_add(&profs, 1);
	if (info->si_code != SI_KERNEL)
		wrong("SIGPROF: si_code %d", info->si_code);
}

static void on_timer(int signal, siginfo_t *info, void *unused)
{
	(void)signal;
	(void)unused;
	handled = handled + 1;
	expirations = expirations + 1 + (unsigned)info->si_overrun;
	behind = (now_ns() - armed_ns) / INTERVAL_NS - expirations;
	if ((int64_t)behind < 0)
		wrong("%lu expirations", expirations);
	if (info->si_code != SI_TIMER || info->si_value.sival_int != 4711)
		wrong("a timer's: si_code %d, value %d", info->si_code,
		      info->si_value.sival_int);
	if (may_jump)
		siglongjmp(out, 1);
}

/* Instructions that fault, and where to go on after each. */
extern char null_load[], after_null[], trap[], after_trap[], none[],
	after_none[];

static uint64_t load_null(void)
{
	uint64_t value = 0;

#if defined(__x86_64__)
	__asm__ volatile("null_load: movq (%1), %0\nafter_null:"
			 : "+r"(value)
			 : "r"(0L));
	__asm__ volatile("trap: int3\nafter_trap:");
	__asm__ volatile("none: ud2\nafter_none:");
#elif defined(__aarch64__)
	__asm__ volatile("null_load: ldr %0, [%1]\nafter_null:"
			 : "+r"(value)
			 : "r"(0L));
	__asm__ volatile("trap: brk #0\nafter_trap:");
	__asm__ volatile("none: udf #0\nafter_none:");
#endif
	return value;
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
	const struct {
		int signal;
		char *at, *after;
	} all[] = {{SIGSEGV, null_load, after_null},
		   {SIGTRAP, trap, after_trap},
		   {SIGILL, none, after_none}};
	ucontext_t *u = context;
#if defined(__x86_64__)
	greg_t *pc = &u->uc_mcontext.gregs[REG_RIP];
	/* That of a breakpoint is behind it. */
	const long back = signal == SIGTRAP;
#elif defined(__aarch64__)
	unsigned long long *pc = &u->uc_mcontext.pc;
	const long back = 0;
#endif

	faults = faults + 1;
	if (info->si_code <= 0 || (signal == SIGSEGV && info->si_addr != NULL))
		wrong("signal %d: si_code %d, at %p", signal, info->si_code,
		      info->si_addr);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (all[i].signal != signal ||
		    (uintptr_t)*pc - (uintptr_t)back != (uintptr_t)all[i].at)
			continue;
		*pc = (__typeof__(*pc))(uintptr_t)all[i].after;
		return;
	}
	give_up("a fault where there is none");
}

static void jump_out(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID,
				 .sigev_signo = BY_TIMER,
				 .sigev_value.sival_int = 4711};
	struct itimerspec every = {.it_interval.tv_nsec = INTERVAL_NS};
	uint64_t first_ns, end_ns;
	timer_t timer;

	armed_ns = now_ns();
	first_ns = armed_ns + INTERVAL_NS;
	event.sigev_notify_thread_id = thread_number();
	must(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0,
	     "timer_create");
	every.it_value.tv_sec = (time_t)(first_ns / 1000000000);
	every.it_value.tv_nsec = (long)(first_ns % 1000000000);
	mask(SIG_UNBLOCK, BY_TIMER);
	must(timer_settime(timer, TIMER_ABSTIME, &every, NULL) == 0,
	     "timer_settime");
	while (!atomic_load(&ending)) {
		if (sigsetjmp(out, 1) == 0) {
			may_jump = 1;
			check_registers(2000);
		}
		may_jump = 0;
	}
	/* Had one been lost, no later one would be told of in its time. */
	behind = 1;
	end_ns = now_ns();
	while (behind != 0)
		patience(end_ns, "a timer's signal is lost");
	must(timer_delete(timer) == 0, "timer_delete");
}

static void fault(void)
{
	const uint64_t before = faults;

	if (load_null() != 0)
		wrong("a load of nothing");
	if (faults != before + 3)
		wrong("%lu faults of 3", faults - before);
}

/* Bytes that count up, to the end; a handler with SA_RESTART ends no read. */
static void read_all(void)
{
	unsigned char next = 0, byte;
	ssize_t n;

	mask(SIG_UNBLOCK, SIGUSR1);
	while ((n = read(pipes[0], &byte, 1)) == 1)
		if (byte != next++)
			wrong("read: %d for %d", byte, next - 1);
	if (n < 0)
		wrong("read: %s", strerror(errno));
}

static int wait_in(enum role role, int epoll_fd)
{
	const struct timespec nap = {.tv_nsec = 2000000};
	struct pollfd file = {.fd = sockets[0], .events = POLLIN};
	struct epoll_event event;
	const sigset_t set = set_of(SIGTERM);
	char byte;

	if (role == WAITS_IN_EPOLL)
		return epoll_wait(epoll_fd, &event, 1, 2);
	if (role == WAITS_IN_POLL)
		return poll(&file, 1, 2);
	if (role == WAITS_IN_RECV)
		return (int)recv(sockets[0], &byte, 1, 0);
	if (role == WAITS_IN_SLEEP)
		return nanosleep(&nap, NULL);
	return sigtimedwait(&set, NULL, &nap);
}

static void wait_once(enum role role, int epoll_fd)
{
	const unsigned long before = handled;

	if (wait_in(role, epoll_fd) >= 0 || errno == EAGAIN)
		return;
	if (errno != EINTR)
		wrong("call %d: %s", role, strerror(errno));
	else if (handled == before)
		wrong("call %d: EINTR without a handler", role);
}

#endif
