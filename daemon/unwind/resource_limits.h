/*
 * Limits on the memory and the CPU time of sentry-profd-unwind, for the case that its code has a
 * fault. The process sets them at its start.
 *
 * The code that reads a file has its own limits. If that code has a fault, a malicious file of a
 * target can at worst force a restart of this process. It cannot use up the machine's memory, nor
 * occupy a processor for ever. Only an attacker who executes code in this process can fill the
 * memory, with memfds (docs/SECURITY.md).
 */
#ifndef DAEMON_UNWIND_RESOURCE_LIMITS_H
#define DAEMON_UNWIND_RESOURCE_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

/*
 * Makes the kernel kill this process before all others when memory is short, on the machine or in
 * the control group (oom_score_adj). Reason: this process may fill memfds, and the kernel counts
 * the memory of an unmapped memfd for no process. So the kernel would kill other processes instead.
 * Call this function before the process gives up its privileges. An error is ignored.
 */
void resource_limits_be_killed_first(void);

/*
 * Sets the limits:
 * - bytes: the most memory that the process can allocate (RLIMIT_DATA). Above it malloc() fails.
 * - file_bytes: the largest size of one memfd (RLIMIT_FSIZE). Above it write(2) fails with EFBIG.
 *   The number of memfds has no limit.
 * - cpu_ns: the most CPU time between two calls of resource_limits_renew(). Above it SIGXCPU ends
 *   the process. Time in which the process waits, or gets no processor, does not count.
 *
 * A limit of memory or size that is lower already stays. Call it once, before the seccomp filter is
 * installed. Returns 0, or the negative errno of a system call.
 */
must_check int resource_limits_start(size_t bytes, size_t file_bytes, uint64_t cpu_ns);

/*
 * Starts to count the CPU time from 0 again. The process calls this function whenever it makes
 * progress. Has no effect before resource_limits_start().
 */
void resource_limits_renew(void);

#endif
