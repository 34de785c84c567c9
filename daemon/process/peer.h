/*
 * Identifies the peer: the process at the other end of a connection to the daemon's socket. Also
 * finds out what the user of the peer may do. All facts come from the kernel, none from the peer.
 * The broker calls peer_of() once, when it accepts the connection, and peer_speaks() before it acts
 * on a request in the name of the peer's process.
 */
#ifndef DAEMON_PROCESS_PEER_H
#define DAEMON_PROCESS_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/process/credentials.h"
#include "lib/base/util.h"

/*
 * Two groups of the system. Members of the first group are operators, who have all rights, as root
 * has (sentry-profctl(8)). Members of the second group see the status and the metrics as operators
 * do; for everything else they have the rights of other users.
 */
#define PEER_OPERATORS "sentry-profd"
#define PEER_VIEWERS   "sentry-profd-view"

#define PEER_NO_GROUP UINT32_MAX /* the group does not exist */
/* The gids of both groups. */
struct peer_groups {
	uint32_t operators, viewers;
};

struct peer {
	/* The process that called connect(2); 0: the process has no pid in this pid namespace. */
	int32_t pid;
	uint32_t uid, gid; /* effective, at the time of connect(2) */
	/*
	 * The user whose limits apply to the peer, such as the number of connections: uid, or the
	 * owner of the range of subordinate uids (subuid(5)) that contains uid. The caller of
	 * peer_of() sets this member after the call.
	 */
	uint32_t user;
	bool is_operator;
	bool sees_all; /* a viewer or an operator */
	/*
	 * The next three members are the state of the process when the daemon accepts the
	 * connection: peer_of() reads them by peer_look(). If start_ticks is 0, the process has
	 * ended or is not known, and start_stack and credentials are not valid.
	 */
	uint64_t start_ticks; /* clock ticks since boot; 0: see above */
	uint64_t start_stack; /* of the program (struct process_identity) */
	struct credentials credentials;
};

/*
 * Identifies the peer of fd, a connected socket, and writes it to *ret, with user 0. own_uid is the
 * daemon's uid. A peer is an operator in each of these cases:
 * - it is a member of the group groups->operators;
 * - its uid is own_uid, and own_uid is not 0;
 * - its uid is 0, it has CAP_SYS_PTRACE, and it is in the daemon's user and pid namespaces;
 * - its uid is 0, and the daemon itself lacks CAP_SYS_PTRACE: such a daemon can do nothing for the
 *   peer that the peer could not do itself.
 * Returns 0, or -errno of getsockopt(2).
 *
 * Before Linux 6.5 the kernel gives no pidfd of the peer. Then there is a gap: if the peer ends
 * between connect(2) and this call, and another process of the same user gets its pid, the function
 * takes the other process for the peer.
 */
must_check int peer_of(int fd, uint32_t own_uid, const struct peer_groups *groups,
		       struct peer *ret);

/*
 * Sets start_ticks, start_stack and credentials of *p to those that process p->pid has now. Returns
 * false if the process has ended, or executes a program at this moment: then p->start_ticks and
 * p->start_stack are as before the call, and p->credentials is not valid.
 */
bool peer_look(struct peer *p);

/*
 * Returns true if the daemon may treat a request on the connection as one of process p->pid. The
 * process must have had the same effective ids at the accept as at connect(2), must not have ended,
 * and one of these must hold:
 * - it runs the program that it ran at the accept;
 * - it has executed another program, and has the same credentials as at the accept.
 * So a user's connection does not speak for a set-user-ID program that the user's process executes.
 */
bool peer_speaks(const struct peer *p);

/* Reads the gids of both groups from /etc/group. PEER_NO_GROUP stands for a group not in it. */
void peer_groups(struct peer_groups *ret);

#endif
