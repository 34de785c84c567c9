/*
 * Waits for the next stop of a tracee, or until a time, in one system call. No
 * descriptor tells of stops, so what comes at a descriptor ends no such wait:
 * the caller sees to it that the time is near.
 *
 * A signal ends the wait. One that came just before the call would be lost, so
 * its handler does not return: it jumps out (await.c).
 *
 * One for each process; one thread at a time waits, which is that of
 * await_enter. The signal is AWAIT_SIGNAL; others have to block it.
 */
#ifndef DAEMON_AWAIT_H
#define DAEMON_AWAIT_H

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
void await_fini(struct await *a);

/* For the calling thread the signal is let in. */
void await_enter(void);

/*
 * At first_ns of CLOCK_MONOTONIC, and every period_ns from then on, in place of
 * what was asked for before.
 */
void await_ring(struct await *a, uint64_t first_ns, uint64_t period_ns);
void await_rest(struct await *a);

/*
 * Takes the next wait status of a tracee or child, as waitpid(-1) with __WALL,
 * until_ns: a time at which it rings. False: that is over; or, before it, there
 * is nobody to wait for.
 */
must_check bool await_next(const struct await *a, uint64_t until_ns,
			   pid_t *ret_pid, int *ret_status);

#endif
