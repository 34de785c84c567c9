/*
 * The bounds of a process that reads a stranger's files, beside those that
 * reading them has itself: a fault there costs a start of that process, not the
 * machine's memory, or a processor for ever.
 */
#ifndef DAEMON_UNWIND_LEASH_H
#define DAEMON_UNWIND_LEASH_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

/*
 * From now on malloc fails above so many bytes (RLIMIT_DATA), and SIGXCPU ends
 * the process when it has used a processor for cpu_ns since the last
 * leash_renew: its own time, so that who waits, or is left without a processor,
 * is not ended. For good, and to be called before a filter of system calls.
 * Returns 0 or -errno.
 */
must_check int leash_start(size_t bytes, uint64_t cpu_ns);

/* Something is done. Without leash_start it does nothing. */
void leash_renew(void);

#endif
