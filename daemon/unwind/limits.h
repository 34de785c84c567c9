/*
 * Resource limits of sentry-profd-unwind: memory and CPU time.
 *
 * Each reader of a file has limits of its own. These limits are for a fault in
 * one of them: a file that a target's user made can cost a restart of this
 * process, but not the machine's memory or a processor for ever.
 */
#ifndef DAEMON_UNWIND_LIMITS_H
#define DAEMON_UNWIND_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

/*
 * Sets both limits. From now on malloc() fails above so many bytes (RLIMIT_DATA),
 * and SIGXCPU ends the process when it has used cpu_ns of CPU time since the last
 * limits_renew(). Time in which the process waits, or gets no processor, does not
 * count.
 *
 * The limits cannot be removed. Called before the seccomp filter is installed.
 * Returns 0 or -errno.
 */
must_check int limits_start(size_t bytes, uint64_t cpu_ns);

/*
 * Starts the CPU time anew. The process calls it whenever it makes progress.
 * Does nothing before limits_start().
 */
void limits_renew(void);

#endif
