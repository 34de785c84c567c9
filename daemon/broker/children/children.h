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
 * Starts the ship of the options, that of Spotlight if it is on, and capture. The caller has set
 * has_dsn, dsn, spotlight_url and ship_fds (ship_open_files) before. Returns 0; or -errno, and no
 * restart is scheduled.
 */
must_check int children_start(struct children *c);
/*
 * Finds the unwind process of an owner's key, or makes and starts one. Returns 0; -ENOMEM; or
 * -EAGAIN if all HEARTBEAT_SLOTS places are taken: then unwind processes without targets end within
 * a second (deadlines.h). A process that cannot be started now is no error: a restart is scheduled.
 * *ret stays valid until children_sweep() frees it.
 */
must_check int children_get_unwind(struct children *c, const struct owner *owner,
				   struct unwind **ret);
/*
 * Finds the ship of a DSN, or makes and starts one. Two texts of the same DSN have one ship. As for
 * children_get_unwind(), a process that cannot be started now is no error. Returns 0; -ENOMEM;
 * -EAGAIN if the ship of this DSN, or one of SHIPS_MAX ships, was told to end and has not ended
 * yet; or -ENOSPC if there are SHIPS_MAX ships otherwise.
 */
must_check int children_get_ship(struct children *c, const char *dsn, struct ship **ret);
/* Returns true if children_get_ship() would find s for this DSN. */
bool children_ship_is_for(const struct ship *s, const char *dsn);
/*
 * Asks capture to make the ring of u, and counts the request in u->rings_awaited. capture answers
 * with MSG_RING_MADE. Returns 0 or the negative errno of socketpair(2).
 */
must_check int children_make_ring(struct children *c, struct unwind *u);
/*
 * Frees the unwinds and ships that were told to end (is_leaving) and have ended. An unwind stays
 * until capture has answered for its rings, a ship while it has envelopes in flight. Called at the
 * end of a turn, after instances_sweep(). No other function removes an entry from these lists.
 */
void children_sweep(struct children *c);
/*
 * To be called at every turn: calls children_check_killed() and child_check_slowed(), and starts
 * the children whose restart is due.
 */
void children_check(struct children *c);

/* Adds the processor time of *more to *sum; sum->rss_bytes becomes the larger of both. */
void children_add_usage(struct usage *sum, const struct usage *more);

#endif
