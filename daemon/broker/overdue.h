/*
 * Kills children that owe the broker an answer for too long. An unwind process owes an answer to
 * a request to open or close a session; capture, to a request to make a ring or to attach to or
 * detach from a target. Any child owes MSG_READY after its start, and its end when its socket is
 * closed or it was told to leave. A target that has taken over its unwind process could make it
 * never answer, and would then occupy places in the table of targets, which all users share. A
 * capture that does not answer, but shows a heartbeat, would sample nothing.
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

/* To be called once a second. */
void overdue_check(struct broker *b);

#endif
