/*
 * Decides whether a peer of the daemon's socket may look into a process: the peer may if the kernel
 * would let the peer trace the process with ptrace(2), by the kernel's rules of user ids and
 * capabilities (kernel/ptrace.c, __ptrace_may_access(), and security/commoncap.c). The daemon must
 * not show its peers what they could not see themselves. This module does not ask Yama or other
 * security modules.
 */
#ifndef DAEMON_PROCESS_MAY_TRACE_H
#define DAEMON_PROCESS_MAY_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/process/peer.h"

/*
 * Returns true if
 * - the connection speaks for its process (peer_speaks()),
 * - the real, effective and saved uid and gid of process pid are those of the peer,
 * - process pid is dumpable: /proc/PID/stat belongs to that uid,
 * - process pid is in the peer's pid namespace, or in one below that,
 * - and, if process pid is in the peer's user namespace, its permitted capabilities are a subset of
 *   the peer's; if it is in another user namespace, the peer's user owns that namespace, and the
 *   parent of that namespace is the peer's.
 *
 * Returns false if the daemon cannot read one of these facts, for example because the peer or the
 * process has ended.
 */
bool may_trace(const struct peer *peer, int32_t pid);

#endif
