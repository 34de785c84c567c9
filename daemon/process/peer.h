/*
 * Who is at the other end of a connection, in the kernel's words: nothing that
 * he says himself is in it.
 */
#ifndef DAEMON_PROCESS_PEER_H
#define DAEMON_PROCESS_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

/*
 * Members of the first are operators, as root is (docs/sentry-profctl.8);
 * members of the second see what operators see, and may do nothing more.
 */
#define PEER_OPERATORS "sentry-profd"
#define PEER_VIEWERS   "sentry-profd-view"

/* Their gids. */
#define PEER_NO_GROUP UINT32_MAX /* there is no such group */
struct peer_groups {
	uint32_t operators, viewers;
};

struct peer {
	/* The process that called connect(2); 0: none that is known here. */
	int32_t pid;
	uint64_t start_ticks; /* of that process; 0: it has ended */
	uint32_t uid;	      /* its effective one, at that time */
	bool is_operator;
	bool sees_all; /* so do operators */
};

/*
 * fd: connected. own_uid: the daemon's, who may what root may. Returns 0 or
 * getsockopt's error.
 *
 * Before Linux 6.5 a process that takes the pid of one that ended between its
 * connect(2) and this call is taken for it, if it is the same user's.
 */
must_check int peer_of(int fd, uint32_t own_uid, const struct peer_groups *groups,
		       struct peer *ret);

/* By /etc/group. */
void peer_groups(struct peer_groups *ret);

#endif
