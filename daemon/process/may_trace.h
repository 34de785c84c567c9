/*
 * Whether a peer of the daemon's socket may look into a process: whether the kernel would let it
 * trace the process with ptrace(2), by its rules of user ids and capabilities
 * (kernel/ptrace.c, __ptrace_may_access(), and security/commoncap.c). The daemon must not show its
 * peers what they could not see themselves. Yama and other security modules are not asked.
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
 * - it is dumpable: /proc/PID/stat belongs to that uid,
 * - it is in the peer's pid namespace, or one below that,
 * - in the peer's user namespace: its permitted capabilities are a subset of the peer's; in another
 *   one: the peer's user owns the namespace, and its parent is the peer's.
 * False if the daemon cannot read one of these, for example because the peer or the process has
 * ended.
 */
bool may_trace(const struct peer *peer, int32_t pid);

#endif
