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
 * Two groups. Members of the first group are operators, as root is (sentry-profctl(8)). Members of
 * the second group see the status and the metrics as operators do, and may otherwise do what other
 * users may.
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
	 * The user whose limits count for the peer: uid, or the owner of the range of subordinate
	 * uids that contains uid.
	 */
	uint32_t user;
	bool is_operator;
	bool sees_all; /* a viewer or an operator */
	/*
	 * The next three members are what peer_look() reads when the daemon accepts the connection.
	 */
	uint64_t start_ticks; /* of the process, after boot; 0: the process has ended */
	uint64_t start_stack; /* of the program (struct process_identity) */
	struct credentials credentials;
};

/*
 * Identifies the peer of fd, a connected socket. own_uid: the daemon's user, whose processes are
 * operators unless own_uid is 0. The caller sets user. A peer with uid 0 is an operator if its user
 * and pid namespaces are the daemon's and it has CAP_SYS_PTRACE. If the daemon itself lacks that
 * capability, every peer with uid 0 is an operator. Returns 0, or the negative errno of
 * getsockopt(2).
 *
 * Before Linux 6.5 the kernel gives no pidfd of the peer. If the peer ends between connect(2) and
 * this call, and another process of the same user gets its pid, this function takes that process
 * for the peer.
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
 * ran when the daemon accepted the connection, or has executed another program and has the same
 * credentials as at that time. So a connection of a user does not speak for a set-user-ID program
 * that the user's process executes. Also returns false if the process has ended, or if it had other
 * ids when the daemon accepted the connection than at connect(2).
 */
bool peer_speaks(const struct peer *p);

/* Looks both groups up in /etc/group. */
void peer_groups(struct peer_groups *ret);

#endif
