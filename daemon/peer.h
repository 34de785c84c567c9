/*
 * Who is at the other end of a connection, in the kernel's words: nothing that
 * he says himself is in it.
 */
#ifndef DAEMON_PEER_H
#define DAEMON_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

/* Its members are operators, as root is (docs/sentry-profctl.8). */
#define PEER_GROUP "sentry-profd"

struct peer {
	/* The process that called connect(2); 0: none that is known here. */
	int32_t pid;
	uint64_t start_ticks; /* of that process; 0: it has ended */
	uint32_t uid;	      /* its effective one, at that time */
	bool is_operator;
};

/*
 * fd: connected. own_uid: the daemon's, who may what root may. gid: the
 * group's; PEER_NO_GROUP: there is none. Returns 0 or getsockopt's error.
 *
 * Before Linux 6.5 a process that takes the pid of one that ended between its
 * connect(2) and this call is taken for it, if it is the same user's.
 */
#define PEER_NO_GROUP UINT32_MAX
must_check int peer_of(int fd, uint32_t own_uid, uint32_t gid,
		       struct peer *ret);

/* The group's gid by /etc/group, or PEER_NO_GROUP. */
uint32_t peer_group(void);

#endif
