/*
 * The ends of child processes: each is noted, and a child that is wanted is planned to be
 * started again, after a wait that is longer with each failure in a row. sigchld.h calls
 * wait(2).
 */
#ifndef DAEMON_BROKER_CHILDREN_REAP_H
#define DAEMON_BROKER_CHILDREN_REAP_H

#include <stdbool.h>
#include <sys/resource.h>

#include "daemon/broker/children/child.h"
#include "lib/base/util.h"

/*
 * The child cannot be started, or has ended: plans another start, soon for the first
 * failure in a row. Logs that, and once more when it goes on like that.
 */
void child_failed(struct child *child, const char *what);
/*
 * The child's process has ended with this status of wait(2). If no process of its kind has
 * ever worked, the broker's run ends, since another one would fail the same way.
 */
void child_died(struct child *child, int status, const struct rusage *usage);
/* Children that were killed and do not die: the broker goes on as if they had. */
void children_check_killed(struct children *c);

/*
 * For the end of the broker. children_close closes the children's sockets, at which they
 * end; a ship still says what becomes of chunks. True as long as any child runs.
 */
must_check bool children_close(struct children *c);
/* A ship is busy, as with putting chunks on the disk. */
must_check bool children_ships_work(const struct children *c);
/* Kills all that still run. */
void children_kill(struct children *c);

#endif
