/*
 * The queue of envelopes that ship has received from the broker and has not sent yet. outbox.c
 * takes the oldest one for each request; a new envelope goes to the end.
 *
 * An item is owned by the queue while it is queued, and by the caller before and after.
 * Its payload is a sealed memfd, so a waiting item takes memory: the queue has a maximum in items
 * and in bytes.
 */
#ifndef DAEMON_SHIP_QUEUE_H
#define DAEMON_SHIP_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/msg/msg.h"
#include "daemon/msg/msg_ship.h"
#include "lib/base/ipc.h"
#include "lib/ship/package.h"
#include "proto/chunk_v2.h"

/* The largest envelope, compressed: incompressible bytes grow a little. */
#define QUEUE_BODY_MAX (CHUNK_V2_SIZE_MAX + (1u << 20))

/* An envelope has three headers: its own, and those of its items, a transaction and a profile. */
_Static_assert(PACKAGE_UNPACKED_MAX >= CHUNK_V2_SIZE_MAX + 3 * ENVELOPE_HEADER_SIZE,
	       "every envelope that is put into the spool can be read back");

/* An envelope from its MSG_ENVELOPE until the MSG_ENVELOPE_DONE. */
struct queue_item {
	struct package package; /* package.platform points to the member platform below */
	uint64_t seq;		/* the broker's number of the envelope */
	bool was_tried;		/* the server did not answer a request with this envelope */
	char chunk_id[MSG_ID_SIZE];
	char platform[MSG_TEXT_MAX];
};

/*
 * Makes an item of a message MSG_ENVELOPE. Takes the descriptors of the payload and of the
 * transaction (msg_envelope.anchor_size) out of the message, and leaves those of the output file in
 * the message. Returns 0, -EPROTO if the message or a descriptor is invalid, or -ENOMEM.
 */
must_check int queue_item_new(struct ipc_message *message, struct queue_item **ret);
/* Closes the item's descriptors and frees it. */
void queue_item_free(struct queue_item *item);

/* The most items and bytes. A dozen targets fill the queue in a few minutes if the server is slow.
 */
#define QUEUE_MAX	32
#define QUEUE_BYTES_MAX (256u << 20)
_Static_assert(QUEUE_MAX >= MSG_ENVELOPES_MAX, "the queue takes what the broker has in flight");

/* All zeros: empty. */
struct queue {
	struct queue_item *oldest_first[QUEUE_MAX];
	size_t n;
	uint64_t bytes; /* of payloads */
};

/* Returns whether the item fits into the queue. */
bool queue_has_room(const struct queue *q, const struct queue_item *item);

/* Add an item as the newest or as the oldest. The queue must have fewer than QUEUE_MAX items. */
void queue_push_back(struct queue *q, struct queue_item *item);
void queue_push_front(struct queue *q, struct queue_item *item);

/* Removes and returns the oldest item. The queue must not be empty. */
struct queue_item *queue_pop(struct queue *q);

#endif
