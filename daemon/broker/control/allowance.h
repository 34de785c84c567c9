/*
 * Limits on the clients of the daemon's socket: the number of connections and the work per
 * second. The limits are per uid, so that more connections do not give a user more work. Pure:
 * the time is an argument, now_ns by CLOCK_MONOTONIC.
 *
 * A request of a user who has used up the work is not refused. It stays in the queue of the
 * user's socket until there is more.
 */
#ifndef DAEMON_BROKER_CONTROL_ALLOWANCE_H
#define DAEMON_BROKER_CONTROL_ALLOWANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

/*
 * The number of connections of all users, and how many of them only root and the group
 * sentry-profd may use.
 */
#define ALLOWANCE_CONNECTIONS_MAX 4096
#define ALLOWANCE_RESERVED	  64
/* Connections of one user: for example the workers of a large server, with one each. */
#define ALLOWANCE_USER_MAX 1024
/* Connections of one process: it needs one; two libraries in it may have one each. */
#define ALLOWANCE_PROCESS_MAX 8
/* The number of users with a connection at the same time. */
#define ALLOWANCE_USERS 256

/*
 * The unit of work is a small message, which costs some microseconds: serving one user's whole
 * allowance keeps the broker busy for less than 1 % of the time. The allowance is enough for a
 * program that serves one request at a time, 500 a second, with a message at the beginning and
 * the end of each root span.
 */
#define ALLOWANCE_PER_SECOND 1000
#define ALLOWANCE_AT_ONCE    1000

struct allowance_user {
	uint32_t uid;
	uint32_t connections; /* 0: the entry may be reused */
	uint64_t full_ns;     /* when the token bucket of the work is full (lib/base/bucket.h) */
};

struct allowance {
	struct allowance_user users[ALLOWANCE_USERS];
	size_t connections;
	size_t connections_max; /* limit by the descriptors of the process */
};

/* descriptors: the process's limit (RLIMIT_NOFILE). */
void allowance_init(struct allowance *a, uint64_t descriptors);

/*
 * Counts a new connection of uid. of_process: how many connections its process has already.
 * Returns false, and counts nothing, if a limit is reached.
 */
bool allowance_open(struct allowance *a, uint32_t uid, bool is_operator, size_t of_process);
/* A connection of uid has ended. */
void allowance_close(struct allowance *a, uint32_t uid);

/* Returns true if a request of uid, which has a connection, may be served now. */
bool allowance_may_ask(struct allowance *a, uint32_t uid, uint64_t now_ns);
/* Takes work, in small messages, from uid's allowance, which may become negative. */
void allowance_use(struct allowance *a, uint32_t uid, uint32_t work, uint64_t now_ns);

#endif
