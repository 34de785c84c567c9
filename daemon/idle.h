/*
 * Unwind processes that serve nobody any more: one of a uid stays for a minute
 * after its last target, since a service that is started anew finds in it what
 * was read of its files, and then ends.
 */
#ifndef DAEMON_IDLE_H
#define DAEMON_IDLE_H

#include "daemon/broker.h"

#define IDLE_NS (60 * NS_PER_SEC)

/* At every turn of a service. now_ns: by CLOCK_MONOTONIC. */
void idle_check(struct broker *b, uint64_t now_ns);

#endif
