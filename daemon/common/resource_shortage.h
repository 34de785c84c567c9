/*
 * Recognises and counts shortages of descriptors, processes or memory in the broker and in capture.
 * A shortage is not the fault of a child, target or client. So the broker ends none of these
 * because of a shortage, and capture does not report the ring of an unwind process as broken. Both
 * try the operation again later. This module logs at most one line a minute.
 */
#ifndef DAEMON_COMMON_RESOURCE_SHORTAGE_H
#define DAEMON_COMMON_RESOURCE_SHORTAGE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Returns true if error, a positive errno, says that a resource was short: EMFILE, ENFILE, ENOMEM,
 * EAGAIN, ENOBUFS or ETOOMANYREFS. EAGAIN counts because fork(2) returns it. If the EAGAIN of a
 * non-blocking descriptor is no shortage for the caller, the caller checks for it first.
 */
bool resource_shortage_is(int error);

/*
 * Counts a shortage, and logs a line unless one was logged in the last minute. error: its errno,
 * positive. delayed: what has to wait, such as "a message of sentry-profd-unwind", for the line
 * "DELAYED waits and is tried again, because a resource is short: ERROR".
 */
void resource_shortage_note(int error, const char *delayed);

/* Returns the number of shortages since the start of the process. */
uint64_t resource_shortage_count(void);

/*
 * Returns 0 if this process can open IPC_FDS_MAX descriptors now, as many as a message can carry;
 * otherwise -errno. The broker reads a message only after this function has returned 0, because the
 * kernel drops the descriptors of a message for which the process has no room (scm_detach_fds() in
 * net/core/scm.c).
 */
int resource_shortage_check_descriptors(void);

#endif
