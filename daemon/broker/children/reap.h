/*
 * The ends of child processes: each is noted, and whoever is wanted is planned to be
 * started again, later with each failure in a row.
 */
#ifndef DAEMON_BROKER_CHILDREN_REAP_H
#define DAEMON_BROKER_CHILDREN_REAP_H

#include <stdbool.h>

#include "daemon/broker/children/children.h"

struct broker;

/* If it ended now, would it be replaced by another? */
bool child_is_wanted(const struct child *child);
/*
 * It does not run, or has ended: plans another start, soon for the first
 * failure in a row. Says so then, and once more when it goes on like that.
 */
void child_failed(struct child *child, const char *what);
/* SIGCHLD: takes note of who has ended. */
void children_reap(struct broker *b);
/* Those that were killed and do not die: goes on as if they had. */
void children_check_killed(struct broker *b);
/* Closes their sockets, waits for their end, kills what is left. */
void children_end(struct broker *b);

#endif
