/*
 * Decides whether a peer (the process at the other end of a connection to the daemon's socket) may
 * see inside another process. The answer follows the rules by which the kernel lets a process trace
 * another one with ptrace(2): the daemon must not show a peer what the peer could not see itself.
 * The rules are those for user ids and capabilities (__ptrace_may_access() in kernel/ptrace.c,
 * security/commoncap.c), except that CAP_SYS_PTRACE gives the peer no further rights. Yama and
 * other security modules are not asked.
 */
#ifndef DAEMON_PROCESS_MAY_TRACE_H
#define DAEMON_PROCESS_MAY_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/process/peer.h"

/*
 * Returns true if
 * - the peer's process is still the one that connected, with the same rights (peer_speaks()),
 * - the real, effective and saved uid and gid of process pid are those of the peer,
 * - process pid is dumpable: /proc/PID/stat belongs to that uid,
 * - process pid is in the peer's pid namespace, or in one below that,
 * - and one of these holds:
 *   - process pid is in the peer's user namespace, and has no permitted capability that the peer
 *     lacks;
 *   - process pid is in a child of the peer's user namespace, and the peer's user owns this child.
 *
 * Returns false if the daemon cannot read one of these facts, for example because the peer or the
 * process has ended.
 */
bool may_trace(const struct peer *peer, int32_t pid);

#endif
