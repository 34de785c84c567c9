/*
 * The deadlines of child processes. Two kinds are checked here:
 * - the answer or the end that a child owes the broker (deadlines_check_answers);
 * - how long an unused unwind or ship process stays (deadlines_end_unused_unwinds,
 *   deadlines_end_unused_ships).
 *
 * All deadlines, and what follows when one has passed:
 *
 *     what is awaited                  for at most                  then the process
 *     MSG_READY after its start        OVERDUE_CHECKS               is killed and restarted
 *     an answer, listed below          OVERDUE_CHECKS               is killed and restarted
 *     its end, after the order to end  OVERDUE_CHECKS               is killed
 *     a target of an unwind process    IDLE_NS                      is ordered to end
 *     a heartbeat of capture           1 s or 10 s (watch.h)        is killed and restarted
 *     its end, when the broker ends    3 s without progress, 30 s   is killed
 *     or is suspended                  in all (idle_timeout)
 *     its death after SIGKILL          2 s (reap.h)                 counts as dead
 *
 * Answers:
 * - An unwind process must answer a request to open or close a session. A target that has taken
 *   over its unwind process could prevent the answer, and would then occupy places in the table of
 *   runs, which all users share.
 * - capture must answer a request to make a ring, and a request to attach to or detach from a
 *   target. A capture that does not answer, but shows a heartbeat, would sample nothing. capture
 *   may be unable to answer a request to detach because it waits for room in a ring. So the
 *   target's unwind process, which empties the ring, is killed first, and capture only if that does
 *   not help.
 * - A ship may keep a chunk for as long as its server is slow or down, but must answer MSG_PING,
 *   which it gets OVERDUE_PING_CHECKS checks after its start and after each answer.
 *
 * Unused processes:
 * - An unwind process stays for IDLE_NS after the last target of its key (daemon/process/owner.h)
 *   has ended. So a service that restarts finds its files already read. If sentry-profd prints a
 *   table of functions at its end (options_prints_table()), its unwind processes stay until then.
 * - Of the unwind processes without a target those that were needed last stay: at most IDLE_MAX,
 *   and at most as many as the table of unwind processes has free places. A program that executes
 *   another one with file capabilities ten times a second needs a new unwind process each time,
 *   because each such process has a key of its own.
 * - A ship stays as long as the configuration has its DSN or a run of the profiler uses it. A ship
 *   that was started for an inspection (control/inspect.h), and that no run has used, stays for
 *   IDLE_NS. The ship of the options and the ship of Spotlight always stay.
 *
 * A target or a section that needs a process later gets a new one.
 */
#ifndef DAEMON_BROKER_DEADLINES_H
#define DAEMON_BROKER_DEADLINES_H

#include <stdint.h>

#include "lib/base/util.h"

struct broker;

/*
 * A child is killed at this number of checks in a row, one a second, at which its answer is due. It
 * is a number of checks and not a time: seconds in which the broker was stopped or had no processor
 * do not count. An unwind process may compute for 60 s on one file (CPU_NS_MAX in
 * daemon/unwind/main.c), and must not be killed before.
 */
#define OVERDUE_CHECKS 60

/* The checks from the start of a ship, or from its last answer, to the next MSG_PING. */
#define OVERDUE_PING_CHECKS 10

/* How long an unused process stays. */
#define IDLE_NS (60 * NS_PER_SEC)
/* How many unused unwind processes stay. One has some 2 MB of memory of its own. */
#define IDLE_MAX 16

/* Kills children that owe an answer for too long. To be called once a second. */
void deadlines_check_answers(struct broker *b);

/*
 * Orders unused unwind processes to end. To be called about once a second. now_ns: CLOCK_MONOTONIC.
 */
void deadlines_end_unused_unwinds(struct broker *b, uint64_t now_ns);
/*
 * Orders unused ships to end. To be called about once a second, but only in a service; if the
 * command line says what is profiled, all ships stay.
 */
void deadlines_end_unused_ships(struct broker *b, uint64_t now_ns);

#endif
