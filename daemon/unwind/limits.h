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
 * If memory is short, on the machine or in the control group, the kernel will end this process
 * before others (oom_score_adj): the memory of a memfd that is not mapped counts for no process, so
 * the kernel could not find the process that fills memfds. Call it before the process gives up its
 * privileges. An error is ignored.
 */
void limits_be_killed_first(void);

/*
 * Sets the limits. From now on malloc() fails above so many bytes (RLIMIT_DATA), a
 * memfd has at most file_bytes (RLIMIT_FSIZE; their number has no limit), and SIGXCPU ends the
 * process when it has used cpu_ns of CPU time since the last limits_renew(). Time in which the
 * process waits, or gets no processor, does not count.
 *
 * The limits cannot be removed. Called before the seccomp filter is installed.
 * Returns 0 or -errno.
 */
must_check int limits_start(size_t bytes, size_t file_bytes, uint64_t cpu_ns);

/*
 * Starts the CPU time anew. The process calls it whenever it makes progress.
 * Does nothing before limits_start().
 */
void limits_renew(void);

#endif
