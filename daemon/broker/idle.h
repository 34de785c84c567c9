/*
 * Ends unwind and ship processes that are no longer needed. A target or a section that needs one
 * later gets a new process.
 *
 * An unwind process stays for IDLE_NS after the last target of its key has ended, so that a
 * service that restarts finds its files already read. Of these processes the IDLE_MAX that were
 * needed last stay, and only as many as there are free places for further unwind processes: a
 * program that executes another one with file capabilities ten times a second needs a new unwind
 * process each time, since a key of a mixed process never comes back. A ship stays as long as the
 * configuration has its DSN or a run of the profiler uses it; but a ship that was started for an
 * inspection (control/inspect.h), and that no run has used, stays for IDLE_NS. The ship of the
 * options and the ship of Spotlight always stay.
 */
#ifndef DAEMON_BROKER_IDLE_H
#define DAEMON_BROKER_IDLE_H

#include <stdint.h>

#include "lib/base/clock.h"

struct broker;

#define IDLE_NS (60 * NS_PER_SEC)
/* An idle process has some 2 MB of memory of its own. */
#define IDLE_MAX 16

/* Called about once a second. now_ns: CLOCK_MONOTONIC. */
void idle_check_unwinds(struct broker *b, uint64_t now_ns);
/* The same, in service mode only: the command line names no processes. */
void idle_check_ships(struct broker *b, uint64_t now_ns);

#endif
