/* Chunks that do not arrive: each is counted with its reason (enum discard). */
#ifndef DAEMON_BROKER_DELIVERY_LOSS_H
#define DAEMON_BROKER_DELIVERY_LOSS_H

#include <stdint.h>

#include "daemon/broker/children/children.h"
#include "daemon/broker/targets/instance.h"

struct broker;

/*
 * A chunk of i is lost before ship had it: enum discard. s is the ship of the
 * run that made it, whose server is told; i may have another one by now.
 */
void loss_count(struct instance *i, struct ship *s, uint32_t reason);
/* What there was no process to be told of. */
void loss_tell(struct ship *s);

#endif
