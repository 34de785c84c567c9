/*
 * What is asked of the daemon over its socket, and done: the part of
 * daemon/broker/control/control.h that knows the broker. Who may what is
 * daemon/broker/control/rights.h.
 */
#ifndef DAEMON_BROKER_CONTROL_OPERATE_H
#define DAEMON_BROKER_CONTROL_OPERATE_H

#include "lib/base/util.h"

struct broker;

/*
 * Makes the socket that the options name, with the rights that we still have;
 * none if they name none. On a fault prints one line.
 */
must_check int operate_open(struct broker *b);
/* Listens to it, when there is a loop. */
must_check int operate_start(struct broker *b);
/* At every turn. */
void operate_check(struct broker *b);
/* Takes it away. */
void operate_close(struct broker *b);

#endif
