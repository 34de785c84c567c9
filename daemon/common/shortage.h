/*
 * Lack of descriptors, processes or memory in the broker. It passes, and it is
 * no fault of a child, a target or a client: whatever needed the resource waits
 * and is tried again. Each lack is counted, and one line a minute names it.
 */
#ifndef DAEMON_COMMON_SHORTAGE_H
#define DAEMON_COMMON_SHORTAGE_H

#include <stdbool.h>
#include <stdint.h>

/* True for an errno (positive) that says that a resource was short. */
bool shortage_is(int error);

/*
 * Counts a lack: error is its errno (positive), waits says in the log what is
 * tried again, as in "a message of sentry-profd-unwind".
 */
void shortage_note(int error, const char *waits);

/* How often, since the start. */
uint64_t shortage_count(void);

/*
 * Whether a descriptor can be had. A message that carries a descriptor is read
 * only then: the kernel drops the descriptor of a message that is read without
 * room for it (scm_detach_fds() in net/core/scm.c). Returns 0 or -errno.
 */
int shortage_of_descriptors(void);

#endif
