/*
 * Starts the child processes, restarts them when they have ended, and frees those that are no
 * longer needed. child.h has the state of each.
 */
#ifndef DAEMON_BROKER_CHILDREN_CHILDREN_H
#define DAEMON_BROKER_CHILDREN_CHILDREN_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/broker/children/child.h"
#include "lib/base/util.h"

/*
 * Initialises c->capture as a child that does not run. Call it after wiring_connect(), which sets
 * c->state and c->events.
 */
void children_init(struct children *c);
/*
 * Starts the first ship, whose DSN is c->dsn ("" if none is given), the ship of Spotlight if
 * c->spotlight_url is not "", and capture. Call it once, after has_dsn, dsn, spotlight_url and
 * ship_fds (ship_open_files) are set. Returns 0 or -errno. After an error no restart is scheduled,
 * and the caller ends the children that were started (children_close() in reap.h).
 */
must_check int children_start(struct children *c);
/*
 * Finds the unwind process of an owner's key, or makes and starts one. A process that cannot be
 * started now is no error: a restart is scheduled. *ret stays valid until children_sweep() frees
 * it. Returns 0; -ENOMEM; or -EAGAIN if c->unwinds is full. After -EAGAIN places become free within
 * about a second, because unused unwind processes are ended (deadlines.h).
 */
must_check int children_get_unwind(struct children *c, const struct owner *owner,
				   struct unwind **ret);
/*
 * Finds the ship of a DSN, or makes and starts one. Two spellings of the same DSN have one ship. A
 * process that cannot be started now is no error: a restart is scheduled. *ret stays valid until
 * children_sweep() frees it. Returns 0, -ENOMEM, or
 * - -EAGAIN: the ship of this DSN was told to end and still exists; or there are SHIPS_MAX ships,
 *   and at least one of them was told to end. A later call can succeed.
 * - -ENOSPC: there are SHIPS_MAX ships, and none was told to end.
 */
must_check int children_get_ship(struct children *c, const char *dsn, struct ship **ret);
/* Returns true if s is the ship of this DSN. Two spellings of the same DSN make no difference. */
bool children_ship_is_for(const struct ship *s, const char *dsn);
/*
 * Asks capture, which must run, to make the ring of u. Counts the request in u->rings_awaited.
 * capture answers with MSG_RING_MADE. Returns 0 or the negative errno of socketpair(2).
 */
must_check int children_make_ring(struct children *c, struct unwind *u);
/*
 * Frees each struct unwind and struct ship whose process was told to end (is_leaving) and has
 * ended. Keeps an unwind for which a running capture still has to make a ring, and a ship that has
 * envelopes in flight. Called at the end of a turn, after instances_sweep(). No other function
 * removes an entry of c->unwinds or c->ships.
 */
void children_sweep(struct children *c);
/*
 * To be called at every turn: calls children_check_killed() and child_check_slowed(), and starts
 * the children whose restart is due. Starts capture only if state_is_sampling() is true.
 */
void children_check(struct children *c);

/* Adds the processor time of *more to *sum; sum->rss_bytes becomes the larger of both. */
void children_add_usage(struct usage *sum, const struct usage *more);

#endif
