/*
 * Handles the ends of child processes. If the broker still needs a child that has ended, this
 * module counts a restart, by kind of child and reason (struct restarts), and schedules the
 * restart. The delay grows with each failure in a row (reap_child_failed). A child whose executable
 * is of another version than sentry-profd is counted, but not restarted (DEGRADED_VERSION).
 *
 * As long as no child of a kind has sent MSG_READY, restarts of this kind are likely to fail as
 * well. So the broker then logs an error and ends (PHASE_STOPPING)
 * - as soon as a child of this kind exits by itself,
 * - or at a child's third failure in a row, if signals end its processes.
 */
#ifndef DAEMON_BROKER_CHILDREN_REAP_H
#define DAEMON_BROKER_CHILDREN_REAP_H

#include <stdbool.h>

#include "daemon/broker/children/child.h"
#include "lib/base/util.h"

/*
 * Schedules a restart of a child that could not be started or has ended. The delay is 0 after the
 * first failure in a row, 100 ms after the second, then twice as long each time, at most 5 s. A
 * failure 10 s or more after the start is the first of a new row. Logs the first and the eighth
 * failure in a row. what: the text after the child's name in the log line ("cannot be started").
 */
void reap_child_failed(struct child *child, const char *what);
/*
 * To be called after SIGCHLD: reaps all processes that have ended, and handles their ends. Leaves
 * the end of a process without a struct child that the broker has forked, such as a helper, to the
 * callback other_ended (struct child_events). Never waits.
 */
void children_reap(struct children *c);
/*
 * Gives up on children that have not died 2 s after SIGKILL: logs an error and handles them as if
 * SIGKILL had ended them. Called in each turn of the event loop.
 */
void children_check_killed(struct children *c);

/* Returns the name of a reason in metrics and JSON, a string literal; "" for RESTART_REASON_N. */
const char *reap_reason_name(enum restart_reason reason);
/*
 * Counts one restart of a child that has ended with this status of wait4(2). The reason follows
 * from child->state, which says whether the broker has killed the child, and from status.
 */
void reap_count_restart(struct restarts *r, const struct child *child, int status);

/*
 * The next three functions are for the end of the broker.
 *
 * children_close() closes the sockets to the children, which makes them exit. Sockets to ships are
 * only shut down for writing: a ship first reports what has become of its chunks. Returns true
 * while any child runs. Call it again until it returns false.
 */
must_check bool children_close(struct children *c);
/* Returns true if a thread of any ship is runnable: the ship is writing chunks, for example. */
must_check bool children_ships_work(const struct children *c);
/* Sends SIGKILL to all children that still run. Does not wait for their ends. */
void children_kill(struct children *c);

#endif
