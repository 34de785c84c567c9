/*
 * The deadlines of child processes. Two kinds are checked here:
 * - the answer or the end that a child owes the broker (deadlines_check_answers);
 * - how long an unused unwind or ship process stays (deadlines_end_unused_unwinds,
 *   deadlines_end_unused_ships).
 *
 * All deadlines, and what follows when one has passed:
 *
 *     the broker waits for             for at most                  then the process
 *     MSG_READY after its start        OVERDUE_CHECKS               is killed and restarted
 *     an answer, listed below          OVERDUE_CHECKS               is killed and restarted
 *     its end, after the order to end  OVERDUE_CHECKS               is killed
 *     a target that uses the process   IDLE_NS (see below)          is ordered to end
 *     a heartbeat, of capture          1 s or 10 s (watch.h)        is killed and restarted
 *     its end, when the broker ends    3 s without progress, 30 s   is killed
 *     or is suspended                  in all (idle_timeout)
 *     its death after SIGKILL          2 s (reap.h)                 counts as dead
 *
 * OVERDUE_CHECKS is 60 checks, one a second. IDLE_NS is 60 s.
 *
 * Answers:
 * - An unwind process must answer a request to open or close a session. Otherwise a target that has
 *   taken over its unwind process could keep places in the table of runs, which all users share.
 * - capture must answer a request to make a ring, and a request to attach to or detach from a
 *   target. A capture that does not answer, but shows a heartbeat, would sample nothing. If capture
 *   does not answer a request to detach, it may wait for room in a ring. So the target's unwind
 *   process, which empties that ring, is killed first, and capture only after as many checks again.
 * - A ship may keep a chunk for as long as its server is slow or down, but must answer MSG_PING
 *   with MSG_PONG. The broker sends MSG_PING OVERDUE_PING_CHECKS checks after MSG_READY, and as
 *   many after each MSG_PONG.
 *
 * Unused processes are ended. A target that needs such a process later gets a new one:
 * - An unwind process ends IDLE_NS after the end of the last target of its key
 *   (daemon/process/owner.h); an open question of targets/held_execs.h counts as a target. So a
 *   service that restarts within this time finds its files already read. If sentry-profd prints a
 *   table of functions at its end (options_prints_table()), this limit does not apply.
 * - If more than IDLE_MAX unwind processes are unused, or more than the table of unwind processes
 *   has free places, those that have been unused longest end earlier. Reason: each execution of a
 *   program with file capabilities needs an unwind process of its own, since it has its own key.
 * - A ship ends when the configuration does not have its DSN any more and no instance uses the
 *   ship. If an inspection (control/inspect.h) started the ship and no run has used it, the ship
 *   ends IDLE_NS after the last inspection. Two ships always stay: the one that starts together
 *   with sentry-profd (is_first), and the ship of Spotlight.
 */
#ifndef DAEMON_BROKER_DEADLINES_H
#define DAEMON_BROKER_DEADLINES_H

#include <stdint.h>

#include "lib/base/util.h"

struct broker;

/*
 * A child is killed if this number of checks in a row, one a second, finds that the child still
 * owes an answer. This is a number of checks and not a time, so that seconds in which the broker
 * was stopped or had no processor do not count. An unwind process may compute for 60 s on one file
 * (CPU_NS_MAX in daemon/unwind/main.c), and must not be killed before.
 */
#define OVERDUE_CHECKS 60

/* The number of checks from a ship's MSG_READY or last MSG_PONG to the next MSG_PING. */
#define OVERDUE_PING_CHECKS 10

/* How long an unused process stays. */
#define IDLE_NS (60 * NS_PER_SEC)
/* How many unused unwind processes stay. Each has some 2 MB of memory that it does not share. */
#define IDLE_MAX 16

/*
 * One check: counts for each child whether it owes an answer or its end, and kills those that owe
 * it for too long. To be called once a second.
 */
void deadlines_check_answers(struct broker *b);

/*
 * Orders unused unwind processes to end. To be called about once a second in PHASE_PROFILING.
 * now_ns, here and below: CLOCK_MONOTONIC.
 */
void deadlines_end_unused_unwinds(struct broker *b, uint64_t now_ns);
/*
 * Orders unused ships to end. To be called about once a second in PHASE_PROFILING, but only in a
 * service: if the command line says what is profiled, all ships are to stay.
 */
void deadlines_end_unused_ships(struct broker *b, uint64_t now_ns);

#endif
