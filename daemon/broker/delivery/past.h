/* What the spools of ship processes that have ended had counted. */
#ifndef DAEMON_BROKER_DELIVERY_PAST_H
#define DAEMON_BROKER_DELIVERY_PAST_H

#include "daemon/broker/children/children.h"
#include "daemon/msg/msg_ship.h"

struct broker;

/* The process has ended: the ship keeps its figures of the spool. */
void past_ship_died(struct ship *s);
/* The ship is about to be freed: the broker keeps them. */
void past_ship_gone(struct broker *b, const struct ship *s);
/* What became of chunks in the spool, and what is there now. */
void past_spool(const struct broker *b, struct spool_counts *ret);

#endif
