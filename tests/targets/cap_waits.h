/*
 * What the calls of cap_waits.c and life_waits.c have in common. They stand in
 * cap_timed.h and cap_woken.h, and in the table of cap_kinds.h.
 */
#ifndef TESTS_TARGETS_CAP_WAITS_H
#define TESTS_TARGETS_CAP_WAITS_H

#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/sem.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "call.h"
#include "ends.h"

#define LONG_WAIT_S 3600

/* A thread that waits, again and again. */
struct wait {
	const struct wait_kind *kind;
	long us; /* length of a wait; 0: an hour, and nobody wakes it */

	/* For the calls' use. */
	int fd, other, third, fourth;
	aio_context_t aio;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	sem_t sem;
	atomic_int word;
	struct sockaddr_un name;

	char room[512], wakers[512]; /* what is read, by either thread */

	/* For their arguments: set anew before each call. */
	int ms;
	struct timespec span, until, until_real;
	struct timeval span_tv;
	sigset_t none, waited;
	struct {
		const sigset_t *set;
		size_t size;
	} no_signals;
	struct sembuf down;
	struct iovec byte, all;
	struct mmsghdr byte_message, all_message;
	off_t zero;

	atomic_int tid;
	atomic_ulong eintr, wrong, right;
	atomic_int wrong_errno;
	/* Of the calls since it was last asked for. */
	atomic_ulong ns, longest_ns, n;
};

/* By signal(7), what a handler does to the wait that was set with SA_RESTART. */
enum restart { NOT_TRIED, ENDS, RESTARTS };

struct wait_kind {
	const char *name;
	void (*make)(struct wait *);
	/* What another thread does, so that the wait ends; NULL: it has a
	 * timeout.
	 */
	void (*wake)(struct wait *);
	enum restart restart;
	/*
	 * What the system call returns, or the negative error, when nobody
	 * disturbs it: it timed out, or what it waited for has happened.
	 */
	long result;
	struct call call;
	/* Instead of a system call: true if it came out so, else errno. */
	bool (*function)(struct wait *);
};

#define AT(field) CALL_FIELD(CALL_AT, struct wait, field)
#define OF(field) CALL_FIELD(CALL_INT, struct wait, field)
#define FD	  OF(fd)
#define ROOM	  AT(room)

#define SIGSET_BYTES 8 /* the kernel's */

/* What other threads block, too, so that it is sent to one of these. */
#define TO_SIGNALFD 40
#define TO_SIGWAIT  41

/* A signal was handled in this thread. */
static _Thread_local volatile sig_atomic_t handled;
static atomic_ulong n_handled; /* by all */

static void on_signal(int number)
{
	(void)number;
	handled = 1;
	atomic_fetch_add(&n_handled, 1);
}

static char bytes[1 << 16];

static struct timespec span(const struct wait *w)
{
	return w->us == 0 ? (struct timespec){.tv_sec = LONG_WAIT_S}
			  : timespec_of((uint64_t)w->us * 1000);
}

static struct timespec until(const struct wait *w, clockid_t clock)
{
	const struct timespec s = span(w);

	return timespec_of(clock_ns(clock) +
			   (uint64_t)s.tv_sec * 1000000000 +
			   (uint64_t)s.tv_nsec);
}

static void set_arguments(struct wait *w)
{
	w->ms = w->us == 0 ? LONG_WAIT_S * 1000 : (int)(w->us + 999) / 1000;
	w->span = span(w);
	w->span_tv = (struct timeval){w->span.tv_sec, w->span.tv_nsec / 1000};
	w->until = until(w, CLOCK_MONOTONIC);
	w->until_real = until(w, CLOCK_REALTIME);
	sigemptyset(&w->none);
	w->no_signals.set = &w->none;
	w->no_signals.size = SIGSET_BYTES;
	w->waited = set_of(TO_SIGWAIT);
	w->down = (struct sembuf){.sem_op = -1};
	w->byte = (struct iovec){w->room, 1};
	w->all = (struct iovec){bytes, sizeof(bytes)};
	w->byte_message.msg_hdr =
		(struct msghdr){.msg_iov = &w->byte, .msg_iovlen = 1};
	w->all_message.msg_hdr =
		(struct msghdr){.msg_iov = &w->all, .msg_iovlen = 1};
	w->zero = 0;
}

/* One wait: true if it came out as it should, else errno is set or 0. */
static bool wait_once(struct wait *w)
{
	const struct wait_kind *kind = w->kind;
	long r;

	set_arguments(w);
	errno = 0;
	if (kind->function != NULL)
		return kind->function(w);
	r = call_make(&kind->call, w);
	return (r < 0 ? -errno : r) == kind->result;
}

/* Of a function that can only time out. */
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

static void wait_add(struct wait *w, const struct wait_kind *kind, long us)
{
	w->kind = kind;
	w->us = us;
	w->fd = w->other = w->third = -1;
	if (kind->make != NULL)
		kind->make(w);
}

static void make_pair(struct wait *w)
{
	open_pair(SOCK_STREAM, &w->fd, &w->other);
}

static void make_pipe(struct wait *w)
{
	open_pipe(&w->fd, &w->other);
}

static void write_other(struct wait *w)
{
	(void)!write(w->other, "x", 1);
}

#endif
