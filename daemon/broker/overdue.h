/*
 * Kills children that owe the broker something for too long: an unwind process, the answer
 * to a session that is to open or to close; any child whose socket is closed, or that is to
 * leave, its end. An unwind process that a target has taken over may never answer, and would
 * keep places in the table of targets, which all users share.
 *
 * The limit is a number of checks, one a second, and not a time: seconds in which the broker
 * itself was stopped, or had no processor, do not count.
 */
#ifndef DAEMON_BROKER_OVERDUE_H
#define DAEMON_BROKER_OVERDUE_H

struct broker;

/*
 * An unwind process may compute for this many seconds for one file (CPU_NS_MAX in
 * daemon/unwind/main.c), and must not be killed before.
 */
#define OVERDUE_LOOKS 60

/* Once a second. */
void overdue_look(struct broker *b);

#endif
