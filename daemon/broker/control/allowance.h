/*
 * Limits of what a user may ask of the daemon's socket: the number of connections at a time,
 * and the work a second. Limits are per uid, so that more connections do not give a user more
 * work. Pure: time is an argument.
 *
 * Requests of a user who has used up the work are not refused. They wait in the queues of the
 * user's own sockets until there is more.
 */
#ifndef DAEMON_BROKER_CONTROL_ALLOWANCE_H
#define DAEMON_BROKER_CONTROL_ALLOWANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

/* In all, and the part of it that is for root and the group alone. */
#define ALLOWANCE_CONNECTIONS_MAX 4096
#define ALLOWANCE_RESERVED	  64
/* The workers of a large server, with a connection each, are one user's. */
#define ALLOWANCE_USER_MAX 1024
/* One is what a process needs; two libraries in it may have one each. */
#define ALLOWANCE_PROCESS_MAX 8
/* Users at a time. */
#define ALLOWANCE_USERS 256

/*
 * Work is counted in small messages, which cost some microseconds each: with
 * all of one user's the broker is busy for less than a hundredth of a second a
 * second. The root spans of a program that serves one request at a time begin
 * and end 500 times a second, say.
 */
#define ALLOWANCE_PER_SECOND 1000
#define ALLOWANCE_AT_ONCE    1000

struct allowance_user {
	uint32_t uid;
	uint32_t connections; /* 0: the entry is free */
	uint64_t full_ns;     /* the bucket of its work: lib/base/bucket.h */
};

struct allowance {
	struct allowance_user users[ALLOWANCE_USERS];
	size_t connections;
	size_t connections_max; /* what the process has descriptors for */
};

/* descriptors: that the process may have in all. */
void allowance_init(struct allowance *a, uint64_t descriptors);

/*
 * Another connection of uid: of_process has so many already. True if there may
 * be one, which is counted then.
 */
bool allowance_open(struct allowance *a, uint32_t uid, bool is_operator, size_t of_process);
void allowance_close(struct allowance *a, uint32_t uid);

/* True if uid, who has a connection, may ask for something now. */
bool allowance_may_ask(struct allowance *a, uint32_t uid, uint64_t now_ns);
/* It was given work, in small messages. May owe some then. */
void allowance_use(struct allowance *a, uint32_t uid, uint32_t work, uint64_t now_ns);

#endif
