/* Waits for events, signals, semaphores and messages of another thread. */
#ifndef TESTS_TARGETS_CAP_WOKEN_EVENTS_H
#define TESTS_TARGETS_CAP_WOKEN_EVENTS_H

#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/msg.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include "cap_timed.h"

static void make_eventfd(struct wait *w)
{
	w->fd = w->other = eventfd(0, 0);
	need(w->fd >= 0);
}

static void wake_eventfd(struct wait *w)
{
	const uint64_t one = 1;

	(void)!write(w->other, &one, sizeof(one));
}

static void make_timerfd(struct wait *w)
{
	struct itimerspec t = {.it_value = span(w), .it_interval = span(w)};

	w->fd = timerfd_create(CLOCK_MONOTONIC, 0);
	need(w->fd >= 0 && timerfd_settime(w->fd, 0, &t, NULL) == 0);
}

static void make_inotify(struct wait *w)
{
	char path[64] = "/tmp/cap_waits.XXXXXX";

	w->fd = inotify_init1(0);
	w->other = mkstemp(path);
	need(w->fd >= 0 && w->other >= 0 &&
	     inotify_add_watch(w->fd, path, IN_MODIFY) >= 0 &&
	     unlink(path) == 0);
}

static void make_signalfd(struct wait *w)
{
	const sigset_t set = set_of(TO_SIGNALFD);

	w->fd = signalfd(-1, &set, 0);
	need(w->fd >= 0);
}

static void send_signal(struct wait *w, int number)
{
	syscall(SYS_tgkill, getpid(), atomic_load(&w->tid), number);
}

static void wake_signalfd(struct wait *w)
{
	send_signal(w, TO_SIGNALFD);
}

static void wake_sigwaitinfo(struct wait *w)
{
	send_signal(w, TO_SIGWAIT);
}

/* These two end by EINTR, and only when a handler has run. */
static bool woken_pause(struct wait *w)
{
	(void)w;
	handled = 0;
	return pause() < 0 && errno == EINTR && handled != 0;
}

static bool woken_sigsuspend(struct wait *w)
{
	handled = 0;
	return sigsuspend(&w->waited) < 0 && errno == EINTR && handled != 0;
}

static void wake_handler(struct wait *w)
{
	send_signal(w, SIGUSR1);
}

static void wake_semop(struct wait *w)
{
	struct sembuf op = {.sem_op = 1};

	(void)semop(w->fd, &op, 1);
}

static const struct {
	long type;
	char text[1];
} message = {.type = 1};

static void make_msg(struct wait *w)
{
	w->fd = msgget(IPC_PRIVATE, 0600);
	need(w->fd >= 0);
}

static void wake_msgrcv(struct wait *w)
{
	(void)msgsnd(w->fd, &message, 1, IPC_NOWAIT);
}

static void make_msg_full(struct wait *w)
{
	make_msg(w);
	while (msgsnd(w->fd, &message, 1, IPC_NOWAIT) == 0)
		;
}

static void wake_msgsnd(struct wait *w)
{
	(void)msgrcv(w->fd, w->wakers, 1, 0, IPC_NOWAIT);
}

static void wake_mq_receive(struct wait *w)
{
	const struct timespec now = {0};

	(void)mq_timedsend(w->fd, "x", 1, 0, &now);
}

static void wake_mq_send(struct wait *w)
{
	const struct timespec now = {0};

	(void)mq_timedreceive(w->fd, w->wakers, 1, NULL, &now);
}

#endif
