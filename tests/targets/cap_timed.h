/* Waits that end by their timeouts. */
#ifndef TESTS_TARGETS_CAP_TIMED_H
#define TESTS_TARGETS_CAP_TIMED_H

#include <linux/futex.h>
#include <mqueue.h>
#include <sys/epoll.h>

#include "cap_timed_sockets.h"

static void make_epoll(struct wait *w)
{
	w->fd = epoll_create1(0);
	need(w->fd >= 0);
}

/* The kernel cannot write what is left of the time into it. */
static const void *read_only_span(const struct wait *w)
{
	static const struct timespec hour = {.tv_sec = LONG_WAIT_S};
	static const struct timespec moment = {.tv_nsec = 100000};

	return w->us == 0 ? &hour : &moment;
}

static bool timed_ppoll_read_only(struct wait *w)
{
	const long arguments[6] = {[2] = (long)read_only_span(w)};

	return call_kernel(SYS_ppoll, arguments) == 0;
}

static bool timed_pselect_read_only(struct wait *w)
{
	const long arguments[6] = {[4] = (long)read_only_span(w)};

	return call_kernel(SYS_pselect6, arguments) == 0;
}

static void make_semaphore(struct wait *w)
{
	w->fd = semget(IPC_PRIVATE, 1, 0600);
	need(w->fd >= 0);
}

static void make_mq(struct wait *w)
{
	struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 1};
	char name[64];

	snprintf(name, sizeof(name), "/cap_waits.%d.%p", getpid(), (void *)w);
	w->fd = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
	need(w->fd >= 0);
	mq_unlink(name);
}

static void make_mq_full(struct wait *w)
{
	make_mq(w);
	need(mq_send(w->fd, "x", 1, 0) == 0);
}

static bool timed_nanosleep(struct wait *w)
{
	return nanosleep(&w->span, NULL) == 0;
}

static bool timed_futex(struct wait *w)
{
	return timed_out(syscall(SYS_futex, &w->word, FUTEX_WAIT, 0, &w->span));
}

/* struct futex_waitv; not in this libc's headers. */
struct waiter {
	uint64_t value, address;
	uint32_t flags, reserved;
};

/* Since Linux 5.16. */
static bool timed_futex_waitv(struct wait *w)
{
	const struct waiter waiter = {.address = (uintptr_t)&w->word,
				      .flags = 2};
	long r = syscall(449, &waiter, 1, 0, &w->until, CLOCK_MONOTONIC);

	if (r < 0 && errno == ENOSYS)
		return timed_futex(w);
	return timed_out(r);
}

static void make_locked(struct wait *w)
{
	pthread_mutex_init(&w->mutex, NULL);
	pthread_cond_init(&w->cond, NULL);
	pthread_mutex_lock(&w->mutex);
}

static bool timed_cond(struct wait *w)
{
	return error_is(pthread_cond_timedwait(&w->cond, &w->mutex, &w->until_real),
			ETIMEDOUT);
}

static bool timed_mutex(struct wait *w)
{
	return error_is(pthread_mutex_timedlock(&w->mutex, &w->until_real), ETIMEDOUT);
}

static void make_sem(struct wait *w)
{
	sem_init(&w->sem, 0, 0);
}

static bool timed_sem(struct wait *w)
{
	return timed_out(sem_timedwait(&w->sem, &w->until_real));
}

static void make_aio(struct wait *w)
{
	need(syscall(SYS_io_setup, 1, &w->aio) == 0);
}

static void make_ring(struct wait *w)
{
	struct io_uring_params params = {0};

	w->fd = (int)syscall(SYS_io_uring_setup, 4, &params);
}

static bool timed_io_uring(struct wait *w)
{
	const struct io_uring_getevents_arg arg = {.ts = (uintptr_t)&w->span};
	const long arguments[] = {
		w->fd, 0, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG,
		(long)&arg, sizeof(arg)};

	/* Refused in many containers. */
	if (w->fd < 0)
		return timed_nanosleep(w);
	return call_kernel(SYS_io_uring_enter, arguments) < 0 && errno == ETIME;
}

#endif
