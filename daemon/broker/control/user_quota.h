/*
 * Limits on the peers of the daemon's socket: the number of connections, and the work that their
 * requests cost per second. The work is limited per user, so that a user does not get more of it by
 * more connections. The uid that identifies a user is the peer's uid. If that is a subordinate uid,
 * it is the uid of the range's owner (daemon/config/subuid.h).
 *
 * A new connection costs as much as a small message. When a user has used up the quota of work, a
 * request of the user is not refused: control.h leaves it in the queue of the connection until the
 * quota has grown.
 *
 * The functions make no system calls; now_ns is the time by CLOCK_MONOTONIC.
 */
#ifndef DAEMON_BROKER_CONTROL_USER_QUOTA_H
#define DAEMON_BROKER_CONTROL_USER_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/process/peer.h"
#include "lib/base/util.h"

/*
 * The maximum number of connections of all users, and how many of these are reserved for operators
 * (rights.h).
 */
#define USER_QUOTA_CONNECTIONS_MAX 4096
#define USER_QUOTA_RESERVED	   64
/* The maximum for one user: for example the workers of a large server, with one each. */
#define USER_QUOTA_USER_MAX 1024
/*
 * The maximum for one process. A process needs one; two libraries in a process may have one each.
 */
#define USER_QUOTA_PROCESS_MAX 8
/*
 * The number of users that can have connections at the same time. Operators are not among them: all
 * operators together have one quota, whose uid is USER_QUOTA_OPERATORS. So a user with
 * many uids (subuid(5)) cannot keep operators from the socket.
 */
#define USER_QUOTA_USERS     256
#define USER_QUOTA_OPERATORS UINT32_MAX

/*
 * The quota of work of a user: a token bucket that grows by USER_QUOTA_PER_SECOND and holds at
 * most USER_QUOTA_AT_ONCE. The unit of work is a small message, which costs some microseconds, so
 * the whole quota of a user keeps the broker busy for less than 1 % of the time. It is enough
 * for a program with 500 root spans a second, one after the other, and a message at the beginning
 * and the end of each.
 */
#define USER_QUOTA_PER_SECOND 1000
#define USER_QUOTA_AT_ONCE    1000

/* Returns the uid whose quota a peer uses. The limits of recordings use this uid, too. */
static inline uint32_t user_quota_uid(const struct peer *p)
{
	return p->is_operator ? USER_QUOTA_OPERATORS : p->user;
}

struct user_quota {
	uint32_t uid;
	uint32_t connections; /* 0: another user may get the entry */
	uint64_t full_ns;     /* when the token bucket of the work will be full
				 (lib/base/token_bucket.h) */
};

struct user_quotas {
	struct user_quota operators;
	struct user_quota users[USER_QUOTA_USERS];
	size_t connections;	/* of all users and operators */
	size_t connections_max; /* the limit of connections */
};

/*
 * Sets the limit of connections: USER_QUOTA_CONNECTIONS_MAX, or a quarter of the broker's
 * descriptors if that is less. descriptors: the broker's limit (RLIMIT_NOFILE).
 */
void user_quota_init(struct user_quotas *a, uint64_t descriptors);

/*
 * Counts a new connection of uid. of_process: how many connections the peer's process already
 * has. Returns false, and counts nothing, if a limit is reached.
 */
bool user_quota_open(struct user_quotas *a, uint32_t uid, size_t of_process);
/* Returns true if a user without a connection, who is no operator, can get none. */
bool user_quota_is_full(const struct user_quotas *a);
/* Counts the end of a connection of uid. */
void user_quota_close(struct user_quotas *a, uint32_t uid);

/*
 * Returns true if a request of uid may be served now: the quota has at least one small
 * message left. The user must have a connection.
 */
bool user_quota_may_request(struct user_quotas *a, uint32_t uid, uint64_t now_ns);
/*
 * Takes work, in small messages, from the quota of uid, which may become negative. The user
 * must have a connection.
 */
void user_quota_use(struct user_quotas *a, uint32_t uid, uint32_t work, uint64_t now_ns);

#endif
