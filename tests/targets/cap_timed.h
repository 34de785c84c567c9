/* Waits that end by their timeouts. */
#ifndef TESTS_TARGETS_CAP_TIMED_H
#define TESTS_TARGETS_CAP_TIMED_H

#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sem.h>

#include "cap_timed_sockets.h"

static void make_epoll(struct wait *w)
{
	w->fd = epoll_create1(0);
	need(w->fd >= 0);
}

static bool timed_epoll_wait(struct wait *w)
{
	struct epoll_event event;

	return epoll_wait(w->fd, &event, 1, span_ms(w)) == 0;
}

static bool timed_epoll_pwait(struct wait *w)
{
	struct epoll_event event;
	sigset_t none;

	sigemptyset(&none);
	return epoll_pwait(w->fd, &event, 1, span_ms(w), &none) == 0;
}

static bool timed_epoll_pwait2(struct wait *w)
{
	const struct timespec t = span(w);
	struct epoll_event event;

	return syscall(SYS_epoll_pwait2, w->fd, &event, 1, &t, NULL, 0) == 0;
}

static bool timed_poll(struct wait *w)
{
	return poll(NULL, 0, span_ms(w)) == 0;
}

static bool timed_ppoll(struct wait *w)
{
	const struct timespec t = span(w);
	sigset_t none;

	sigemptyset(&none);
	return ppoll(NULL, 0, &t, &none) == 0;
}

/* The kernel cannot write what is left of the time into it. */
static const struct timespec read_only = {.tv_nsec = 100000};
static const struct timespec read_only_long = {.tv_sec = LONG_WAIT_S};

static const void *read_only_span(const struct wait *w)
{
	return w->us == 0 ? &read_only_long : &read_only;
}

static bool timed_ppoll_read_only(struct wait *w)
{
	return syscall(SYS_ppoll, NULL, 0, read_only_span(w), NULL, 0) == 0;
}

static bool timed_pselect(struct wait *w)
{
	const struct timespec t = span(w);
	sigset_t none;

	sigemptyset(&none);
	return pselect(0, NULL, NULL, NULL, &t, &none) == 0;
}

static bool timed_pselect_read_only(struct wait *w)
{
	return syscall(SYS_pselect6, 0, NULL, NULL, NULL, read_only_span(w),
		       NULL) == 0;
}

static bool timed_select(struct wait *w)
{
	const struct timespec t = span(w);
	struct timeval tv = {.tv_sec = t.tv_sec, .tv_usec = t.tv_nsec / 1000};

	return select(0, NULL, NULL, NULL, &tv) == 0;
}

static bool timed_nanosleep(struct wait *w)
{
	const struct timespec t = span(w);

	return nanosleep(&t, NULL) == 0;
}

static bool timed_clock_nanosleep(struct wait *w)
{
	const struct timespec t = span(w);

	return error_is(clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL), 0);
}

static bool timed_clock_nanosleep_absolute(struct wait *w)
{
	const struct timespec t = until(w, CLOCK_MONOTONIC);

	return error_is(
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL), 0);
}

/* SIGUSR2 is blocked and sent to nobody. */
static bool timed_sigtimedwait(struct wait *w)
{
	const struct timespec t = span(w);
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return timed_out(sigtimedwait(&set, NULL, &t));
}

static void make_semaphore(struct wait *w)
{
	w->fd = semget(IPC_PRIVATE, 1, 0600);
	need(w->fd >= 0);
}

static bool timed_semtimedop(struct wait *w)
{
	const struct timespec t = span(w);
	struct sembuf op = {.sem_op = -1};

	return timed_out(semtimedop(w->fd, &op, 1, &t));
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

static bool timed_mq_receive(struct wait *w)
{
	const struct timespec t = until(w, CLOCK_REALTIME);
	char byte;

	return timed_out(mq_timedreceive(w->fd, &byte, 1, NULL, &t));
}

static bool timed_mq_send(struct wait *w)
{
	const struct timespec t = until(w, CLOCK_REALTIME);

	return timed_out(mq_timedsend(w->fd, "x", 1, 0, &t));
}

static bool timed_futex(struct wait *w)
{
	const struct timespec t = span(w);

	return timed_out(syscall(SYS_futex, &w->word, FUTEX_WAIT, 0, &t));
}

/* struct futex_waitv; not in this libc's headers. */
struct waiter {
	uint64_t value, address;
	uint32_t flags, reserved;
};

/* Since Linux 5.16. */
static bool timed_futex_waitv(struct wait *w)
{
	const struct timespec t = until(w, CLOCK_MONOTONIC);
	const struct waiter waiter = {.address = (uintptr_t)&w->word,
				      .flags = 2};
	long r = syscall(449, &waiter, 1, 0, &t, CLOCK_MONOTONIC);

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
	const struct timespec t = until(w, CLOCK_REALTIME);

	return error_is(pthread_cond_timedwait(&w->cond, &w->mutex, &t),
			ETIMEDOUT);
}

static bool timed_mutex(struct wait *w)
{
	const struct timespec t = until(w, CLOCK_REALTIME);

	return error_is(pthread_mutex_timedlock(&w->mutex, &t), ETIMEDOUT);
}

static void make_sem(struct wait *w)
{
	sem_init(&w->sem, 0, 0);
}

static bool timed_sem(struct wait *w)
{
	const struct timespec t = until(w, CLOCK_REALTIME);

	return timed_out(sem_timedwait(&w->sem, &t));
}

static void make_aio(struct wait *w)
{
	need(syscall(SYS_io_setup, 1, &w->aio) == 0);
}

static bool timed_io_getevents(struct wait *w)
{
	struct timespec t = span(w);
	struct io_event event;

	return syscall(SYS_io_getevents, w->aio, 1L, 1L, &event, &t) == 0;
}

static bool timed_io_pgetevents(struct wait *w)
{
	struct timespec t = span(w);
	struct io_event event;

	return syscall(SYS_io_pgetevents, w->aio, 1L, 1L, &event, &t, NULL) ==
	       0;
}

static void make_ring(struct wait *w)
{
	struct io_uring_params params = {0};

	w->fd = (int)syscall(SYS_io_uring_setup, 4, &params);
	/* Refused in many containers. */
	if (w->fd < 0)
		w->fd = -1;
}

static bool timed_io_uring(struct wait *w)
{
	const struct timespec t = span(w);
	const struct io_uring_getevents_arg arg = {.ts = (uintptr_t)&t};

	if (w->fd < 0)
		return timed_nanosleep(w);
	return syscall(SYS_io_uring_enter, w->fd, 0, 1,
		       IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &arg,
		       sizeof(arg)) < 0 &&
	       errno == ETIME;
}

#endif
