/*
 * The threads of crash.c. Each waits in one kind of call, again and again, and
 * checks how the call ends: none may fail with EINTR or end early. The stops of
 * the crash reporter itself end the calls that the kernel never restarts
 * (epoll_wait(2), sigtimedwait(2)): such a result does not count if a report
 * has begun between the beginning and the end of the call.
 */
#ifndef TESTS_TARGETS_CRASH_THREADS_H
#define TESTS_TARGETS_CRASH_THREADS_H

#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "crash.h"

/* A timed wait: short, but the waits of 1,000 threads must not fill the processors. */
#define NAP_NS(n_threads) ((n_threads) > 100 ? 400000000u : 20000000u)

static uint64_t nap_ns;
static int empty_pipe[2], empty_socket[2];
static uint32_t futex_word;

static long epoll_for(int ms)
{
	static _Thread_local int epoll = -1;
	struct epoll_event event = {.events = EPOLLIN};

	if (epoll < 0) {
		epoll = epoll_create1(EPOLL_CLOEXEC);
		must(epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, empty_pipe[0], &event) == 0,
		     "epoll");
	}
	return epoll_wait(epoll, &event, 1, ms);
}

static long wait_epoll(void)
{
	return epoll_for(-1);
}

static long wait_read(void)
{
	char byte;

	return read(empty_pipe[0], &byte, 1);
}

static long wait_futex(void)
{
	return syscall(SYS_futex, &futex_word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

static long wait_hour(void)
{
	const struct timespec t = {.tv_sec = 3600};

	return syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, NULL);
}

static long wait_signal(void)
{
	const sigset_t set = set_of(SIGUSR2);

	return sigtimedwait(&set, NULL, NULL);
}

static long wait_socket(void)
{
	char byte;

	return recv(empty_socket[0], &byte, 1, 0);
}

static long nap(void)
{
	const struct timespec t = timespec_of(nap_ns);

	return syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, NULL);
}

static long nap_futex(void)
{
	const struct timespec t = timespec_of(nap_ns);
	const long r = syscall(SYS_futex, &futex_word, FUTEX_WAIT_PRIVATE, 0, &t, NULL, 0);

	return r < 0 && errno == ETIMEDOUT ? 0 : r;
}

static long nap_poll(void)
{
	struct pollfd p = {.fd = empty_pipe[0], .events = POLLIN};

	return poll(&p, 1, (int)(nap_ns / 1000000));
}

static long nap_epoll(void)
{
	return epoll_for((int)(nap_ns / 1000000));
}

static long work(void)
{
	run_for(1000000);
	return 0;
}

/* aarch64 has neither call: libc makes others of its functions. */
#ifndef SYS_epoll_wait
#define SYS_epoll_wait SYS_epoll_pwait
#define SYS_poll       SYS_ppoll
#endif

static const struct kind {
	const char *name;
	long (*wait)(void);
	long call;
	bool is_forever, never_restarts;
} kinds[] = {
	{"epoll_wait", wait_epoll, SYS_epoll_wait, true, true},
	{"computing", work, 0, false, false},
	{"read", wait_read, SYS_read, true, false},
	{"nap", nap, SYS_clock_nanosleep, false, false},
	{"futex", wait_futex, SYS_futex, true, false},
	{"timed epoll_wait", nap_epoll, SYS_epoll_wait, false, true},
	{"clock_nanosleep", wait_hour, SYS_clock_nanosleep, true, false},
	{"timed futex", nap_futex, SYS_futex, false, false},
	{"sigtimedwait", wait_signal, SYS_rt_sigtimedwait, true, true},
	{"poll", nap_poll, SYS_poll, false, false},
	{"recv", wait_socket, SYS_recvfrom, true, false},
};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))
#define WORK	1

/* What a further thread does beside, for ever; NULL: there is none. */
static const char *beside;

/*
 * Do signals come that the program ignores? Such a signal wakes a thread of a traced process, and
 * while another thread takes it, the call of the first may fail: docs/SAFETY.md.
 */
static bool has_ignored_signals(void)
{
	return beside != NULL && strcmp(beside, "births") != 0;
}

/* Has a report begun, or is one under way, since this number had ended? */
static bool was_reported(unsigned int ended)
{
	return atomic_load(&shared->begun) != ended;
}

static void check_wait(const struct kind *kind, long result, int error, unsigned int ended,
		       uint64_t ns)
{
	if (result < 0 && error == EINTR) {
		if (!kind->never_restarts || (!was_reported(ended) && !has_ignored_signals()))
			crash_wrong("%s failed with EINTR", kind->name);
		else if (!was_reported(ended))
			say(STDERR_FILENO, "interrupted: %s\n", kind->name);
	} else if (result != 0 || kind->is_forever) {
		crash_wrong("%s: %ld, %s", kind->name, result, strerror(error));
	} else if (kind->call != 0 && ns < nap_ns) {
		crash_wrong("%s ended after %lu us of %lu", kind->name, ns / 1000, nap_ns / 1000);
	}
}

/* A thread, for ever. */
static void *wait_again(void *argument)
{
	const struct kind *kind = argument;
	struct member *m = member_add();
	MARK_STACK(mark);

	m->waits_forever = kind->is_forever;
	m->call = kind->call;
	atomic_store(&m->tid, thread_number());
	for (;;) {
		const unsigned int ended = atomic_load(&shared->ended);
		const uint64_t since = now_ns();
		long result;

		errno = 0;
		result = kind->wait();
		check_wait(kind, result, errno, ended, now_ns() - since);
		atomic_fetch_add(&m->returns, 1);
	}
	KEEP_MARK(mark);
	return NULL;
}

/* The kinds in turn, but only one thread computes. */
static const struct kind *kind_of(unsigned int i)
{
	const struct kind *kind = &kinds[i % N_KINDS];

	return i >= N_KINDS && kind == &kinds[WORK] ? &kinds[WORK + 1] : kind;
}

static void *nothing(void *unused)
{
	return unused;
}

static void make_child(bool is_vfork)
{
	pid_t pid = is_vfork ? vfork() : fork();
	int status;

	if (pid == 0) {
		if (is_vfork)
			run_for(3000000);
		_exit(7);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		crash_wrong("a child: %s", strerror(errno));
	else if (!WIFEXITED(status) || WEXITSTATUS(status) != 7)
		crash_wrong("a child: status %#x", (unsigned int)status);
}

static void *go_on_beside(void *unused)
{
	struct member *m = member_add();
	MARK_STACK(mark);

	atomic_store(&m->tid, thread_number());
	for (;;) {
		if (strcmp(beside, "children") == 0)
			make_child(false);
		else if (strcmp(beside, "vfork") == 0)
			make_child(true);
		else if (strcmp(beside, "births") == 0)
			join(start(nothing, NULL));
		else
			must(kill(getpid(), SIGWINCH) == 0, "kill");
		(void)usleep(1000);
	}
	KEEP_MARK(mark);
	return unused;
}

/* Stacks are small, since there may be 1,000. */
static void start_member(void *(*run)(void *), const void *argument)
{
	pthread_attr_t attributes;
	pthread_t thread;

	must(pthread_attr_init(&attributes) == 0 &&
		     pthread_attr_setstacksize(&attributes, 262144) == 0,
	     "pthread_attr");
	errno = pthread_create(&thread, &attributes, run, (void *)(uintptr_t)argument);
	must(errno == 0, "pthread_create");
}

static void open_empty(void)
{
	must(pipe(empty_pipe) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, empty_socket) == 0,
	     "what threads wait for");
}

/* Waits until this many threads run. */
static void wait_members(unsigned int n)
{
	const uint64_t since = now_ns();

	for (unsigned int i = 0; i < n; i++)
		while (atomic_load(&shared->members[i].tid) == 0)
			patience(since, "its threads");
}

#endif
