/*
 * Waits for the next stop of a tracee, or until a time, in one system call. No
 * descriptor tells of stops, so what comes at a descriptor ends no such wait:
 * the caller sees to it that the time is near.
 *
 * A timer's signal ends the wait. One that comes just before the call is lost:
 * the timer repeats it. It may interrupt other calls of the thread as well:
 * those that wait return EINTR.
 *
 * One for each process; one thread at a time waits, which is that of
 * await_enter. The signal is AWAIT_SIGNAL; others have to block it.
 */
#ifndef DAEMON_CAPTURE_AWAIT_H
#define DAEMON_CAPTURE_AWAIT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "lib/base/util.h"

/* SIGALRM is lib/capture's, for the time of a call. */
#define AWAIT_SIGNAL SIGUSR1

struct await {
	timer_t timer;
	bool made;  /* there is one: else await_ring does nothing */
	bool rings; /* await_next can be called */
};

/* Without a timer, where the kernel refuses one, nothing rings. */
void await_init(struct await *a);

/* For the calling thread the signal is let in. */
void await_enter(void);

/*
 * At first_ns of CLOCK_MONOTONIC, and every again_ns from then on, in place of
 * what was asked for before.
 */
void await_ring(struct await *a, uint64_t first_ns, uint64_t again_ns);
/* Not any more. */
void await_rest(struct await *a);

/*
 * Takes the next wait status of a tracee or child, as waitpid(-1) with __WALL,
 * until_ns: the time at which it rings first. False: that is over, by as long
 * as one repetition at most; or, before it, there is nobody to wait for.
 */
must_check bool await_next(const struct await *a, uint64_t until_ns, pid_t *ret_pid,
			   int *ret_status);

#endif
