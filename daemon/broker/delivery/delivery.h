/*
 * Chunks on their way: from unwind, which hands each over as a sealed memfd, to a ship,
 * to files, and to Spotlight. The broker keeps a chunk until ship says that it is
 * written, sent or lost, and hands it over again to a ship that was started anew.
 */
#ifndef DAEMON_BROKER_DELIVERY_DELIVERY_H
#define DAEMON_BROKER_DELIVERY_DELIVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/broker/children/children.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/msg/msg_unwind.h"

struct broker;

/*
 * A chunk with the descriptors of its message, those that are not there -1.
 * They stay the caller's. Returns 0, or -EPROTO if it breaks a rule.
 */
must_check int delivery_chunk(struct broker *b, struct instance *i, const struct msg_chunk *m,
			      const int fds[IPC_FDS_MAX]);
/* Is it a payload of so many bytes, sealed against changes? */
bool delivery_is_payload(int fd, uint64_t size);
void ship_on_message(struct child *child, struct ipc_message *m);
/* It was replaced: what is on its way is handed over again. */
void delivery_resend(struct broker *b, struct ship *s);
/* ship has so long until it gives up what the server has not taken. */
void delivery_finish(struct broker *b, uint64_t timeout_ns);
/* The same for one ship. */
void delivery_finish_ship(struct ship *s, uint64_t timeout_ns);
/* Is an envelope in flight that s delivers? */
bool delivery_needs(const struct broker *b, const struct ship *s);
/* Gives up what is still on its way. */
void delivery_give_up(struct broker *b);
/* The ship has ended for good: gives up what it had. */
void delivery_ship_gone(struct broker *b, const struct ship *s);
/*
 * At the end of a turn, before instances_sweep: frees the envelopes that are
 * not in flight any more. The only place that takes one out of the list.
 */
void delivery_sweep(struct broker *b);

#endif
