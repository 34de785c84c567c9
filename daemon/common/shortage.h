/*
 * Shortage of descriptors, processes or memory in the broker. It passes, and no child, target
 * or client is to blame: the broker tries the operation again later. Each shortage is
 * counted, and at most one line a minute is logged.
 */
#ifndef DAEMON_COMMON_SHORTAGE_H
#define DAEMON_COMMON_SHORTAGE_H

#include <stdbool.h>
#include <stdint.h>

/* Returns true if error, a positive errno, says that a resource was short. */
bool shortage_is(int error);

/*
 * Counts a shortage. error: its errno, positive. waits: what is tried again later, for the
 * log, as in "a message of sentry-profd-unwind".
 */
void shortage_note(int error, const char *waits);

/* Returns the number of shortages since the start. */
uint64_t shortage_count(void);

/*
 * Returns 0 if a descriptor can be opened now, or -errno. The broker reads a message that
 * carries a descriptor only after this returned 0: the kernel drops the descriptor if there
 * is no room for it (scm_detach_fds() in net/core/scm.c).
 */
int shortage_of_descriptors(void);

#endif
