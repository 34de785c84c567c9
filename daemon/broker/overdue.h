/*
 * Kills children that owe the broker an answer for too long:
 * - An unwind process must answer a request to open or close a session. A target that has taken
 *   over its unwind process could prevent the answer, and would then occupy places in the table
 *   of targets, which all users share.
 * - capture must answer a request to make a ring, and a request to attach to or detach from a
 *   target. A capture that does not answer, but shows a heartbeat, would sample nothing. If capture
 *   does not answer a request to detach, the target's unwind process is killed first, because
 *   capture may be waiting for room in the ring of that process.
 * - A ship may keep a chunk for as long as its server is slow or down, but must answer MSG_PING,
 *   which it gets OVERDUE_PING_CHECKS checks after its start and after each answer.
 * - Each child must send MSG_READY after its start, and must end after its socket was closed or
 *   the broker told the child to end.
 *
 * The limit is OVERDUE_CHECKS checks, one a second, and not a time: seconds in which the broker
 * was stopped or had no processor do not count.
 */
#ifndef DAEMON_BROKER_OVERDUE_H
#define DAEMON_BROKER_OVERDUE_H

struct broker;

/*
 * An unwind process may compute for this many seconds on one file (CPU_NS_MAX in
 * daemon/unwind/main.c), and must not be killed before.
 */
#define OVERDUE_CHECKS 60

/* The checks from the start of a ship, or from its last answer, to the next MSG_PING. */
#define OVERDUE_PING_CHECKS 10

/* To be called once a second. */
void overdue_check(struct broker *b);

#endif
