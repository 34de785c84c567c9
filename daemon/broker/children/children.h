/*
 * Starts the child processes, starts them again when they have ended, and frees those that
 * are not needed any more. child.h has what is known of each.
 */
#ifndef DAEMON_BROKER_CHILDREN_CHILDREN_H
#define DAEMON_BROKER_CHILDREN_CHILDREN_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/broker/children/child.h"
#include "lib/base/util.h"

/* All else is set before: state, events, DSN. Starts nothing. */
void children_init(struct children *c);
/* Capture, the ship of the options, and that of Spotlight. Returns 0 or -errno. */
must_check int children_start(struct children *c);
/*
 * The unwind process of a uid, made if there is none. One that cannot be
 * started now is started later. -ENOMEM, or -EAGAIN: others have to end first.
 */
must_check int children_unwind(struct children *c, uint32_t uid, struct unwind **ret);
/*
 * The ship process of a DSN, made if there is none, whatever text names the
 * DSN. One that cannot be started now is started later. -ENOSPC: the
 * configuration has too many DSNs; -EAGAIN: another ship has to end first;
 * -ENOMEM.
 */
must_check int children_ship(struct children *c, const char *dsn, struct ship **ret);
/* Would children_ship return s for this DSN? */
bool ship_is_for(const struct ship *s, const char *dsn);
/* Capture is asked for its ring, and it gets it when that is made. */
must_check int unwind_make_ring(struct children *c, struct unwind *u);
/*
 * At the end of a turn, after instances_sweep: frees the unwinds and ships that
 * were to leave and have ended. The only place that takes one out of its list.
 */
void children_sweep(struct children *c);
/* At every turn: children that were killed and do not die, and restarts that are due. */
void children_check(struct children *c);

/* Adds up processor time; of memory the sum has the larger. */
void usage_add(struct usage *sum, const struct usage *more);

#endif
