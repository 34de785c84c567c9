/*
 * Wait statuses of all tracees: stops, new threads and children, execs and deaths.
 */
#ifndef LIB_CAPTURE_REAP_H
#define LIB_CAPTURE_REAP_H

#include <stdbool.h>
#include <stdint.h>

struct capture;

/*
 * Handles the wait statuses that are available, up to 256. Returns true if it stopped at that
 * number: there may be more, for which no further SIGCHLD comes, so the caller calls it again.
 */
bool capture_reap(struct capture *c);

/* Handles one wait status that the caller has received by tracee_wait() (ptrace/tracee.h). */
void capture_handle_status(struct capture *c, uint32_t tid, int status);

/*
 * For capture_tick: handles wait statuses in the middle of a tick. If few threads are interrupted,
 * handles the statuses of the interrupted threads; otherwise up to 16 statuses of any tracee, or
 * none if there are more than 2048 threads. The next capture_reap() handles the remaining statuses:
 * the SIGCHLD that announced them is still pending.
 */
void reap_some(struct capture *c);

#endif
