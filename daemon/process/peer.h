/*
 * Identifies the peer: the process at the other end of a connection to the daemon's socket. Also
 * finds out what the user of the peer may do. All facts come from the kernel, none from the peer.
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
	 * The user whose limits (of connections, for instance) count for the peer, set by the
	 * caller of peer_of(): uid, or the owner of the range of subordinate uids that contains
	 * uid.
	 */
	uint32_t user;
	bool is_operator;
	bool sees_all; /* a viewer or an operator */
	/*
	 * The next three members are what peer_look() reads when the daemon accepts the connection.
	 */
	uint64_t start_ticks; /* of the process, after boot; 0: it has ended, or is not known */
	uint64_t start_stack; /* of the program (struct process_identity) */
	struct credentials credentials;
};

/*
 * Identifies the peer of fd, a connected socket, and sets all members of *ret but user. These peers
 * are operators:
 * - members of groups->operators;
 * - if own_uid, the daemon's user, is not 0: peers with this uid;
 * - peers with uid 0 that have CAP_SYS_PTRACE and the daemon's user and pid namespaces;
 * - if the daemon itself lacks CAP_SYS_PTRACE: all peers with uid 0.
 * Returns 0, or -errno of getsockopt(2).
 *
 * Before Linux 6.5 the kernel gives no pidfd of the peer. Then there is a gap: if the peer ends
 * between connect(2) and this call, and another process of the same user gets its pid, the function
 * takes the other process for the peer.
 */
must_check int peer_of(int fd, uint32_t own_uid, const struct peer_groups *groups,
		       struct peer *ret);

/*
 * Sets start_ticks, start_stack and credentials to those that process p->pid has now. Returns false
 * if the process has ended, or executes a program at this moment; credentials may have changed
 * then.
 */
bool peer_look(struct peer *p);

/*
 * Returns true if the daemon may take requests on the connection for requests of process p->pid.
 * Either the process runs the program that it ran when the daemon accepted the connection, or it
 * has executed another program and has the same credentials. So a user's connection does not speak
 * for a set-user-ID program that the user's process executes. Returns false if the process has
 * ended, or if its effective ids at the accept were not those at connect(2).
 */
bool peer_speaks(const struct peer *p);

/* Looks both groups up in /etc/group. The gid of a group that is not there is PEER_NO_GROUP. */
void peer_groups(struct peer_groups *ret);

#endif
