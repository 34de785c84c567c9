/*
 * While the server takes no profiles nothing is sampled: no thread is stopped
 * for what cannot go anywhere. All runs are stopped, and others are started when
 * the limit is over (instances_check).
 *
 * With --output there is somewhere to go, and sampling goes on.
 */
#ifndef DAEMON_LIMIT_H
#define DAEMON_LIMIT_H

#include "daemon/broker.h"

/* ship says until when, by clock_boot_ns; an earlier time than before, too. */
must_check int limit_take(struct broker *b, uint64_t until_ns);

/* At every turn: begins and ends the pause. */
void limit_check(struct broker *b);

/* For how long nothing was sampled, over the whole run. */
uint64_t limit_paused_ns(const struct broker *b);

#endif
