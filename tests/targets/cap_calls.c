/*
 * A thread that waits in one kind of call, and counts how the call returns.
 *
 * Usage: cap_calls CALL [MICROSECONDS]. Without a time each wait lasts until
 * something wakes it; with one, the thread waits that long, runs as long, and
 * waits again. Says "ready TID" with the number of the thread that waits.
 *
 * Lines on its input, each answered by one: "eintr", "other" and "handled" by
 * that and a number (calls that failed with EINTR, calls that returned
 * otherwise, SIGUSR1 handled); "filter" by "ok 0" (from now on the thread is
 * under a seccomp filter that kills the process for restart_syscall). SIGTSTP
 * is ignored. At the input's end it ends.
 */
#include <errno.h>
#include <linux/aio_abi.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "filter.h"

#define LONG_WAIT_S 3600

static atomic_ulong eintr, other, handled;
static atomic_bool filter_wanted, filtered;
static atomic_int thread_id;
static long wait_us;
static int fd = -1;
static aio_context_t aio;
static char full[1 << 16];

static struct timespec span(void)
{
	if (wait_us == 0)
		return (struct timespec){.tv_sec = LONG_WAIT_S};
	return (struct timespec){.tv_sec = wait_us / 1000000,
				 .tv_nsec = wait_us % 1000000 * 1000};
}

static int span_ms(void)
{
	return wait_us == 0 ? -1 : (int)(wait_us / 1000);
}

static void limit(int socket, int option)
{
	const struct timespec t = span();
	const struct timeval timeout = {.tv_sec = t.tv_sec,
					.tv_usec = t.tv_nsec / 1000};

	if (setsockopt(socket, SOL_SOCKET, option, &timeout, sizeof(timeout)))
		abort();
}

static void make_epoll(void)
{
	fd = epoll_create1(0);
}

static void make_pair(void)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		abort();
	fd = pair[0];
	limit(fd, SO_RCVTIMEO);
	limit(fd, SO_SNDTIMEO);
}

static void make_full(void)
{
	make_pair();
	while (send(fd, full, sizeof(full), MSG_DONTWAIT) > 0)
		;
}

static void make_listener(void)
{
	const struct sockaddr_in any = {.sin_family = AF_INET};

	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || bind(fd, (const void *)&any, sizeof(any)) < 0 ||
	    listen(fd, 1) < 0)
		abort();
	limit(fd, SO_RCVTIMEO);
}

static void make_semaphore(void)
{
	/* In a namespace of its own it goes with us, however we end. */
	(void)unshare(CLONE_NEWIPC);
	fd = semget(IPC_PRIVATE, 1, 0600);
	if (fd < 0)
		abort();
}

static void make_inotify(void)
{
	fd = inotify_init1(0);
}

static void make_aio(void)
{
	if (syscall(SYS_io_setup, 1, &aio) < 0)
		abort();
}

static long call_epoll_wait(void)
{
	struct epoll_event event;

	return epoll_wait(fd, &event, 1, span_ms());
}

static long call_epoll_pwait2(void)
{
	const struct timespec t = span();
	struct epoll_event event;

	return syscall(SYS_epoll_pwait2, fd, &event, 1, &t, NULL, 0);
}

static long call_epoll_pwait(void)
{
	struct epoll_event event;
	sigset_t none;

	sigemptyset(&none);
	return epoll_pwait(fd, &event, 1, span_ms(), &none);
}

static long call_semop(void)
{
	struct sembuf op = {.sem_op = -1};

	return semop(fd, &op, 1);
}

static long call_semtimedop(void)
{
	const struct timespec t = span();
	struct sembuf op = {.sem_op = -1};

	return semtimedop(fd, &op, 1, &t);
}

static long call_sigtimedwait(void)
{
	const struct timespec t = span();
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return sigtimedwait(&set, NULL, &t);
}

static long call_io_getevents(void)
{
	struct timespec t = span();
	struct io_event event;

	return syscall(SYS_io_getevents, aio, 1L, 1L, &event, &t);
}

static long call_recv(void)
{
	char byte;

	return recv(fd, &byte, 1, 0);
}

static long call_read(void)
{
	char bytes[512];

	return read(fd, bytes, sizeof(bytes));
}

static long call_readv(void)
{
	char byte;
	const struct iovec iov = {&byte, 1};

	return readv(fd, &iov, 1);
}

static long call_send(void)
{
	return send(fd, full, sizeof(full), 0);
}

static long call_write(void)
{
	return write(fd, full, sizeof(full));
}

static long call_accept(void)
{
	return accept(fd, NULL, NULL);
}

/* These restart by themselves, the first two by restart_syscall. */
static long call_poll(void)
{
	return poll(NULL, 0, wait_us == 0 ? LONG_WAIT_S * 1000 : span_ms());
}

static long call_nanosleep(void)
{
	const struct timespec t = span();

	return clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static long call_pause(void)
{
	return pause();
}

static const struct {
	const char *name;
	void (*make)(void);
	long (*call)(void);
} calls[] = {
	{"epoll_wait", make_epoll, call_epoll_wait},
	{"epoll_pwait", make_epoll, call_epoll_pwait},
	{"epoll_pwait2", make_epoll, call_epoll_pwait2},
	{"semop", make_semaphore, call_semop},
	{"semtimedop", make_semaphore, call_semtimedop},
	{"sigtimedwait", NULL, call_sigtimedwait},
	{"io_getevents", make_aio, call_io_getevents},
	{"recv", make_pair, call_recv},
	{"read_socket", make_pair, call_read},
	{"readv_socket", make_pair, call_readv},
	{"read_inotify", make_inotify, call_read},
	{"send", make_full, call_send},
	{"write_socket", make_full, call_write},
	{"accept", make_listener, call_accept},
	{"poll", NULL, call_poll},
	{"nanosleep", NULL, call_nanosleep},
	{"pause", NULL, call_pause},
};

static void on_signal(int signal_number)
{
	(void)signal_number;
	atomic_fetch_add(&handled, 1);
}

static void install_filter(void)
{
	static const struct sock_filter code[] = {
		FILTER_LOAD_NUMBER,
		FILTER_CALL(SYS_restart_syscall, SECCOMP_RET_KILL_PROCESS),
		FILTER_ALLOW,
	};

	if (!filter_install(code, sizeof(code) / sizeof(code[0]), 0))
		abort();
	atomic_store(&filtered, true);
}

static void run_for_wait_us(void)
{
	struct timespec from, now;

	clock_gettime(CLOCK_MONOTONIC, &from);
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - from.tv_sec) * 1000000 +
			 (now.tv_nsec - from.tv_nsec) / 1000 <
		 wait_us);
}

static void *wait_in_call(void *call)
{
	size_t i = (size_t)(uintptr_t)call;

	atomic_store(&thread_id, (int)syscall(SYS_gettid));
	for (;;) {
		if (atomic_load(&filter_wanted) && !atomic_load(&filtered))
			install_filter();
		if (calls[i].call() < 0 && errno == EINTR)
			atomic_fetch_add(&eintr, 1);
		else
			atomic_fetch_add(&other, 1);
		if (wait_us > 0)
			run_for_wait_us();
	}
	return NULL;
}

static void answer(const char *line)
{
	if (strcmp(line, "filter\n") == 0) {
		atomic_store(&filter_wanted, true);
		while (!atomic_load(&filtered))
			;
		printf("ok 0\n");
	} else if (strcmp(line, "eintr\n") == 0) {
		printf("eintr %lu\n", atomic_load(&eintr));
	} else if (strcmp(line, "other\n") == 0) {
		printf("other %lu\n", atomic_load(&other));
	} else if (strcmp(line, "handled\n") == 0) {
		printf("handled %lu\n", atomic_load(&handled));
	}
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_signal};
	sigset_t waited, handled_here;
	char line[64];
	pthread_t thread;
	size_t i = 0;

	while (argc > 1 && i < sizeof(calls) / sizeof(calls[0]) &&
	       strcmp(calls[i].name, argv[1]) != 0)
		i++;
	if (argc < 2 || i == sizeof(calls) / sizeof(calls[0]))
		return 2;
	wait_us = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (calls[i].make != NULL)
		calls[i].make();
	sigaction(SIGUSR1, &action, NULL);
	signal(SIGTSTP, SIG_IGN);
	sigemptyset(&waited);
	sigaddset(&waited, SIGUSR2);
	sigprocmask(SIG_BLOCK, &waited, NULL);
	if (pthread_create(&thread, NULL, wait_in_call, (void *)i) != 0)
		return 1;
	/* SIGUSR1 is the other thread's. */
	sigemptyset(&handled_here);
	sigaddset(&handled_here, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &handled_here, NULL);
	while (atomic_load(&thread_id) == 0)
		;
	printf("ready %d\n", atomic_load(&thread_id));
	while (fgets(line, sizeof(line), stdin) != NULL)
		answer(line);
	if (strncmp(calls[i].name, "sem", 3) == 0)
		semctl(fd, 0, IPC_RMID);
	_exit(0);
}
