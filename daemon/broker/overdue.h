/*
 * What a child owes the broker: an unwind process, the answer to a session that
 * is to open or to close; any child whose socket is closed, or that is to
 * leave, its end. An honest child pays at once. An unwind process that a target
 * took over may never do so, and would keep the places of targets, which all
 * users share: it is killed.
 *
 * The measure is looks, one a second, and not time: seconds in which the broker
 * itself was stopped, or had no processor, are held against no child.
 */
#ifndef DAEMON_BROKER_OVERDUE_H
#define DAEMON_BROKER_OVERDUE_H

struct broker;

/*
 * As long as an unwind process may compute for one file (CPU_NS_MAX in
 * daemon/unwind/main.c): before that, even a slow one is at work.
 */
#define OVERDUE_LOOKS 60

/* Once a second. */
void overdue_look(struct broker *b);

#endif
