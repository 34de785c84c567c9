/*
 * Shortages of descriptors, processes or memory in the broker and in capture. A shortage is not the
 * fault of a child, target or client. So the broker ends none of them for it, capture does not
 * report the ring of an unwind process as broken, and the operation is tried again later. This
 * module counts the shortages of its process, and logs at most one line a minute.
 */
#ifndef DAEMON_COMMON_RESOURCE_SHORTAGE_H
#define DAEMON_COMMON_RESOURCE_SHORTAGE_H

#include <stdbool.h>
#include <stdint.h>

/* Returns true if error, a positive errno, says that a resource was short. */
bool resource_shortage_is(int error);

/*
 * Counts a shortage. error: its errno, positive. delayed: the object of the operation that is tried
 * again later, for the log line "ERROR: DELAYED waits, and is tried again", as in "a message of
 * sentry-profd-unwind".
 */
void resource_shortage_note(int error, const char *delayed);

/* Returns the number of shortages since the start. */
uint64_t resource_shortage_count(void);

/*
 * Returns 0 if this process can open IPC_FDS_MAX descriptors now, as many as a message can carry;
 * otherwise -errno. The broker reads a message only after this function has returned 0, because the
 * kernel drops the descriptors of a message for which the process has no room (scm_detach_fds() in
 * net/core/scm.c).
 */
int resource_shortage_check_descriptors(void);

#endif
