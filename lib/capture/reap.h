/*
 * Takes the wait statuses of all tracees from the kernel, and handles them: stops, new threads and
 * children, execs and deaths. Used when SIGCHLD arrives, and within ticks.
 */
#ifndef LIB_CAPTURE_REAP_H
#define LIB_CAPTURE_REAP_H

#include <stdbool.h>
#include <stdint.h>

struct capture;

/*
 * Handles available wait statuses: up to 256 of any tracee, and in addition those of interrupted
 * threads. Returns true if there may be more, for which no further SIGCHLD comes: the caller calls
 * the function again soon. Ended targets are freed and reported (capture_options.event). Does
 * nothing and returns false if capture_must_detach_now() (detach.h) is true.
 */
bool capture_reap(struct capture *c);

/*
 * For a caller that calls tracee_wait() itself (ptrace/tracee.h): handles the wait status of thread
 * tid. Ended targets are freed and reported, as by capture_reap().
 */
void capture_handle_status(struct capture *c, uint32_t tid, int status);

/*
 * For capture_tick: handles wait statuses in the middle of a tick. The numbers of threads are those
 * of all targets:
 * - if at most 1/16 of the threads are interrupted: the statuses of the interrupted threads;
 * - else, with up to 2048 threads: up to 16 statuses of any tracee;
 * - else, with more threads: none, since a wait for any tracee takes too long.
 *
 * The next capture_reap() handles the remaining statuses: the SIGCHLD that announced them is still
 * pending.
 */
void reap_some(struct capture *c);

#endif
