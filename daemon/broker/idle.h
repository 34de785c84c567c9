/*
 * Unwind and ship processes that serve nothing any more are told to leave; a
 * target or a section that needs one later gets a new one.
 *
 * An unwind process stays for a minute after the last target of its uid: a
 * service that is started anew finds in it what was read of its files. A ship
 * stays as long as the configuration has its DSN; the first one always does.
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
