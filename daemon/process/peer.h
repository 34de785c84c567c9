/*
 * Identifies the process at the other end of a connection to the daemon's socket, and what
 * its user may do. All facts are from the kernel; none is from the peer.
 */
#ifndef DAEMON_PROCESS_PEER_H
#define DAEMON_PROCESS_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/process/credentials.h"
#include "lib/base/util.h"

/*
 * Groups: members of the first are operators, as root is (sentry-profctl(8)); members of the
 * second see all that operators see, and cannot change anything.
 */
#define PEER_OPERATORS "sentry-profd"
#define PEER_VIEWERS   "sentry-profd-view"

#define PEER_NO_GROUP UINT32_MAX /* the group does not exist */
/* The gids of both groups. */
struct peer_groups {
	uint32_t operators, viewers;
};

struct peer {
	/* The process that called connect(2); 0: it has no pid in this pid namespace. */
	int32_t pid;
	uint32_t uid, gid; /* effective, at the time of connect(2) */
	/* Whose limits count for it: uid, or the owner of uid's range of subordinate uids. */
	uint32_t user;
	bool is_operator;
	bool sees_all; /* a viewer or an operator */
	/* As peer_look() reads them when the connection is accepted. */
	uint64_t start_ticks; /* of the process, after boot; 0: it has ended */
	uint64_t start_stack; /* of its program (struct process_identity) */
	struct credentials credentials;
};

/*
 * Identifies the peer of fd, a connected socket. own_uid: the daemon's user, which counts as an
 * operator. The caller sets user. A peer with uid 0 counts as one if its user and pid namespaces
 * are the daemon's, and it has CAP_SYS_PTRACE; every such peer does if the daemon itself lacks that
 * capability. Returns 0, or an error of getsockopt(2), negative.
 *
 * Before Linux 6.5 the kernel gives no pidfd of the peer. If the peer ends between
 * connect(2) and this call, another process of the same user that gets its pid is taken for
 * it.
 */
must_check int peer_of(int fd, uint32_t own_uid, const struct peer_groups *groups,
		       struct peer *ret);

/*
 * Sets start_ticks, start_stack and credentials to those that process p->pid has now. Returns false
 * if the process has ended, or executes a program at this moment.
 */
bool peer_look(struct peer *p);

/*
 * Returns true if the connection speaks for its process now: the process runs the program that it
 * ran when the connection was accepted, or has executed another one and has the credentials of
 * then. So a set-user-ID program that a user executes has no connection of that user's. Returns
 * false, too, if the process had other ids then than at connect(2), and if it has ended.
 */
bool peer_speaks(const struct peer *p);

/* Looks both groups up in /etc/group. */
void peer_groups(struct peer_groups *ret);

#endif
