/*
 * Handles the ends of child processes. If the broker still needs a child that has ended, it counts
 * a restart, by kind of child and reason (struct restarts). It schedules the restart with a delay
 * that grows with each failure in a row.
 *
 * If no child of its kind has ever sent MSG_READY, and the child exited by itself or was killed at
 * its third failure in a row, a restart would fail, too. Then the broker logs an error and ends
 * (PHASE_STOPPING).
 */
#ifndef DAEMON_BROKER_CHILDREN_REAP_H
#define DAEMON_BROKER_CHILDREN_REAP_H

#include <stdbool.h>

#include "daemon/broker/children/child.h"
#include "lib/base/util.h"

/*
 * Schedules a restart of a child that could not be started or has ended: immediately after
 * the first failure in a row, after 100 ms for the second, then twice as long each time, at
 * most 5 s. An end more than 10 s after the start begins a new row. Logs the first failure in
 * a row and the eighth. what: what happened, after the child's name in the log line ("cannot
 * be started").
 */
void reap_child_failed(struct child *child, const char *what);
/*
 * To be called after SIGCHLD: reaps all processes that have ended, and handles their ends. Leaves
 * the end of a process without a struct child, such as a helper, to the callback other_ended
 * (struct child_events). Never waits.
 */
void children_reap(struct children *c);
/*
 * Gives up on children that have not died 2 s after SIGKILL: logs an error and handles them as if
 * SIGKILL had ended them. Called in each turn of the event loop.
 */
void children_check_killed(struct children *c);

/* Returns the name of a reason, as in metrics and JSON: a string literal. */
const char *reap_reason_name(enum restart_reason reason);
/* Counts a restart of a child that has ended with this status of wait4(2). For children_reap(). */
void reap_count_restarts(struct restarts *r, const struct child *child, int status);

/*
 * The next three functions are for the end of the broker.
 *
 * children_close() closes the sockets to the children, which makes them exit. Sockets to ships are
 * only shut down for writing: a ship first reports what has become of its chunks. Returns true
 * while any child runs. Call it again until it returns false.
 */
must_check bool children_close(struct children *c);
/* Returns true if a thread of any ship is runnable: it is still writing chunks, for example. */
must_check bool children_ships_work(const struct children *c);
/* Sends SIGKILL to all children that still run. Does not wait for their ends. */
void children_kill(struct children *c);

#endif
