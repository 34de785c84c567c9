/*
 * The requests of operators and clients, carried out: control.h reads them from the
 * socket, and this module applies them to the broker. rights.h says who may ask for
 * what.
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
