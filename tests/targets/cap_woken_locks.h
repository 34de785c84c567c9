/* Waits for locks that another thread, or process, has. */
#ifndef TESTS_TARGETS_CAP_WOKEN_LOCKS_H
#define TESTS_TARGETS_CAP_WOKEN_LOCKS_H

#include <sys/file.h>

#include "cap_timed.h"

static void make_locked_by_other(struct wait *w)
{
	char path[64];

	w->fd = memfd_create("cap_waits", 0);
	need(w->fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", w->fd);
	w->other = open(path, O_RDWR);
	need(w->other >= 0 && flock(w->other, LOCK_EX) == 0);
}

/* So that the other one comes in between. */
static bool after_it(struct wait *w, bool ok)
{
	return ok && timed_nanosleep(w);
}

static bool woken_flock(struct wait *w)
{
	return after_it(w, flock(w->fd, LOCK_EX) == 0 &&
				   flock(w->fd, LOCK_UN) == 0);
}

static void wake_flock(struct wait *w)
{
	(void)flock(w->other, LOCK_UN);
	sched_yield();
	while (flock(w->other, LOCK_EX) < 0)
		;
}

static bool lock_record(int fd, short type)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_len = 1};

	return fcntl(fd, F_OFD_SETLKW, &lock) == 0;
}

static void make_record_locked(struct wait *w)
{
	make_locked_by_other(w);
	need(lock_record(w->other, F_WRLCK));
}

static bool woken_record_lock(struct wait *w)
{
	return after_it(w, lock_record(w->fd, F_WRLCK) &&
				   lock_record(w->fd, F_UNLCK));
}

static void wake_record_lock(struct wait *w)
{
	(void)lock_record(w->other, F_UNLCK);
	sched_yield();
	while (!lock_record(w->other, F_WRLCK))
		;
}

static void make_mutex(struct wait *w)
{
	pthread_mutexattr_t pi;

	pthread_mutexattr_init(&pi);
	if (strcmp(w->kind->name, "mutex_pi") == 0)
		pthread_mutexattr_setprotocol(&pi, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&w->mutex, &pi);
	pthread_cond_init(&w->cond, NULL);
}

static bool woken_mutex(struct wait *w)
{
	return after_it(w,
			error_is(pthread_mutex_lock(&w->mutex), 0) &&
				error_is(pthread_mutex_unlock(&w->mutex), 0));
}

static void wake_mutex(struct wait *w)
{
	/* Held from one time to the next. */
	if (w->word != 0)
		pthread_mutex_unlock(&w->mutex);
	sched_yield();
	pthread_mutex_lock(&w->mutex);
	w->word = 1;
}

static bool woken_cond(struct wait *w)
{
	int r = 0;

	pthread_mutex_lock(&w->mutex);
	while (w->word == 0 && r == 0)
		r = pthread_cond_wait(&w->cond, &w->mutex);
	w->word = 0;
	pthread_mutex_unlock(&w->mutex);
	return error_is(r, 0);
}

static void wake_cond(struct wait *w)
{
	pthread_mutex_lock(&w->mutex);
	w->word = 1;
	pthread_cond_signal(&w->cond);
	pthread_mutex_unlock(&w->mutex);
}

static bool woken_sem(struct wait *w)
{
	return sem_wait(&w->sem) == 0;
}

static void wake_sem(struct wait *w)
{
	int n;

	if (sem_getvalue(&w->sem, &n) == 0 && n == 0)
		sem_post(&w->sem);
}

#endif
