/*
 * Limits on the peers of the daemon's socket: the number of connections, and the work that their
 * requests cost per second. The work is limited per user, so that a user does not get more of it by
 * more connections. A user is identified by a uid: the peer's, or, if the peer's is a subordinate
 * uid, that of the user who owns the range (daemon/config/subuid.h). All operators (rights.h)
 * together count as one user, with the uid USER_QUOTA_OPERATORS.
 *
 * A new connection costs as much work as a small message: after user_quota_open() the caller calls
 * user_quota_use() with work 1. When a user has used up the quota of work, requests of the user are
 * not refused: control.h leaves them in the queue of the connection until the quota has grown.
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
 * The maximum number of connections, and how many of these are reserved for operators. If the
 * broker may have few descriptors, the maximum is lower (user_quota_init), and at most half of the
 * lower maximum is reserved.
 */
#define USER_QUOTA_CONNECTIONS_MAX 4096
#define USER_QUOTA_RESERVED	   64
/*
 * The maximum for one user, and for all operators together: enough for a server with 1,000 workers
 * that have a connection each.
 */
#define USER_QUOTA_USER_MAX 1024
/*
 * The maximum for one process. A process needs one; two libraries in a process may have one each.
 */
#define USER_QUOTA_PROCESS_MAX 8
/*
 * The number of users that can have connections at the same time, besides the operators. Operators
 * have a quota of their own, so other users cannot keep them from the socket.
 */
#define USER_QUOTA_USERS     256
#define USER_QUOTA_OPERATORS UINT32_MAX

/*
 * The quota of work of a user: a token bucket that grows by USER_QUOTA_PER_SECOND and holds at
 * most USER_QUOTA_AT_ONCE. The unit is the work for a small message, which takes some microseconds,
 * so the whole quota of a user keeps the broker busy for less than 1 % of the time. The quota is
 * enough for a program that sends two messages for each of 500 root spans a second.
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
	uint64_t full_ns;     /* when the bucket of work is full (lib/base/token_bucket.h) */
};

struct user_quotas {
	struct user_quota operators;
	struct user_quota users[USER_QUOTA_USERS];
	size_t connections;	/* of all users and operators */
	size_t connections_max; /* the limit of connections */
};

/*
 * Initialises *a, without connections. The limit of connections is USER_QUOTA_CONNECTIONS_MAX, or a
 * quarter of the broker's descriptors if that is less. descriptors: the broker's RLIMIT_NOFILE.
 */
void user_quota_init(struct user_quotas *a, uint64_t descriptors);

/*
 * Counts a new connection of uid, a value of user_quota_uid(). of_process: how many connections the
 * peer's process already has. Returns false, and counts nothing, if one of the limits above is
 * reached.
 */
bool user_quota_open(struct user_quotas *a, uint32_t uid, size_t of_process);
/*
 * Returns true if a user who is no operator and has no connection yet could not open one now:
 * USER_QUOTA_USERS other users have connections, or all that are left are reserved for operators.
 */
bool user_quota_is_full(const struct user_quotas *a);
/*
 * Counts the end of a connection of uid. A user who connects again later still has the bucket of
 * before, and so the debt, unless another user has got the entry meanwhile.
 */
void user_quota_close(struct user_quotas *a, uint32_t uid);

/*
 * Returns true if a request of uid may be served now: the quota of uid has at least the work of one
 * small message left. uid must have a connection.
 */
bool user_quota_may_request(struct user_quotas *a, uint32_t uid, uint64_t now_ns);
/*
 * Takes work, in small messages, from the quota of uid. The quota may become negative. uid must
 * have a connection.
 */
void user_quota_use(struct user_quotas *a, uint32_t uid, uint32_t work, uint64_t now_ns);

#endif
