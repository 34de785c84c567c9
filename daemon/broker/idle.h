/*
 * Ends unwind and ship processes that are not needed any more. A target or a section that
 * needs one later gets a new process.
 *
 * An unwind process stays for a minute (IDLE_NS) after the last target of its uid, so that a
 * service that is restarted finds in it what was read of its files. A ship stays as long as
 * the configuration has its DSN, or a run of the profiler uses it; the first ship always stays.
 */
#ifndef DAEMON_BROKER_IDLE_H
#define DAEMON_BROKER_IDLE_H

#include <stdint.h>

#include "lib/base/clock.h"

struct broker;

#define IDLE_NS (60 * NS_PER_SEC)

/* About once a second of a service. now_ns: by CLOCK_MONOTONIC. */
void idle_check(struct broker *b, uint64_t now_ns);

#endif
