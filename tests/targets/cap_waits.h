/*
 * What the calls of cap_waits.c have in common; they stand in cap_timed.h and
 * cap_woken.h.
 */
#ifndef TESTS_TARGETS_CAP_WAITS_H
#define TESTS_TARGETS_CAP_WAITS_H

#include <errno.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LONG_WAIT_S 3600

/* A thread that waits, again and again. The fields are for the calls' use. */
struct wait {
	const struct wait_kind *kind;
	long us; /* length of a wait; 0: an hour, and nobody wakes it */
	int fd, other;
	aio_context_t aio;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	sem_t sem;
	atomic_int word;

	atomic_int tid;
	atomic_ulong eintr, wrong, right;
	atomic_int wrong_errno;
	/* Of the calls since it was last asked for. */
	atomic_ulong ns, longest_ns, n;
};

struct wait_kind {
	const char *name;
	void (*make)(struct wait *);
	/*
	 * True if it came out as it does when nobody disturbs it: it timed
	 * out, or what it waited for has happened; else false, and errno.
	 */
	bool (*call)(struct wait *);
	/* What another thread does, so that the wait ends; NULL: it has a
	 * timeout.
	 */
	void (*wake)(struct wait *);
};

/* SIGUSR1 was handled in this thread. */
static _Thread_local volatile sig_atomic_t handled;

static char bytes[1 << 16];

static void need(bool ok)
{
	if (!ok) {
		perror("cap_waits");
		abort();
	}
}

static struct timespec span(const struct wait *w)
{
	if (w->us == 0)
		return (struct timespec){.tv_sec = LONG_WAIT_S};
	return (struct timespec){.tv_sec = w->us / 1000000,
				 .tv_nsec = w->us % 1000000 * 1000};
}

static int span_ms(const struct wait *w)
{
	return w->us == 0 ? LONG_WAIT_S * 1000 : (int)(w->us + 999) / 1000;
}

static struct timespec until(const struct wait *w, clockid_t clock)
{
	const struct timespec s = span(w);
	struct timespec t;

	clock_gettime(clock, &t);
	t.tv_sec += s.tv_sec;
	t.tv_nsec += s.tv_nsec;
	if (t.tv_nsec >= 1000000000) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000;
	}
	return t;
}

/* Of a call that can only time out. */
static bool timed_out(long result)
{
	return result < 0 && (errno == EAGAIN || errno == ETIMEDOUT);
}

/* The same of those functions that return the error. */
static bool error_is(int error, int expected)
{
	errno = error;
	return error == expected;
}

static void make_pair(struct wait *w)
{
	int pair[2];

	need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	w->fd = pair[0];
	w->other = pair[1];
}

static void make_pipe(struct wait *w)
{
	int pair[2];

	need(pipe(pair) == 0);
	w->fd = pair[0];
	w->other = pair[1];
}

static void write_other(struct wait *w)
{
	(void)!write(w->other, "x", 1);
}

#endif
