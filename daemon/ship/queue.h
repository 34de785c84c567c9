/*
 * The queue of envelopes that ship has received from the broker and has not sent yet. outbox.c
 * takes the first one for each request. New envelopes go to the end, and so do those that have been
 * tried without success: so the first one is not always the oldest.
 *
 * The queue owns an item from the push to the pop. The payload of an item is a sealed memfd and so
 * takes memory: the queue has a maximum of items and of bytes.
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

/* The most bytes of a compressed envelope: incompressible bytes become a little longer. */
#define QUEUE_BODY_MAX (CHUNK_V2_SIZE_MAX + (1u << 20))

/* An envelope has three headers: its own, and those of two items, a transaction and a profile. */
_Static_assert(PACKAGE_UNPACKED_MAX >= CHUNK_V2_SIZE_MAX + 3 * ENVELOPE_HEADER_SIZE,
	       "every envelope that is put into the spool can be read back");

/* An envelope in ship, from MSG_ENVELOPE until ship answers with MSG_ENVELOPE_DONE. */
struct queue_item {
	struct package package; /* package.platform points to the member platform below */
	uint64_t seq;		/* the broker's number of the envelope */
	bool was_tried;		/* a request with it got no answer or a denial */
	bool is_too_large;	/* for the spool; set by spooler_put() */
	char chunk_id[MSG_ID_SIZE];
	char platform[MSG_TEXT_MAX];
};

/*
 * Makes an item of message, a MSG_ENVELOPE whose type and size the caller has checked. The caller
 * frees the item with queue_item_free(). The item takes the descriptors of the payload and, if
 * msg_envelope.anchor_size is above 0, of the anchor out of the message. The descriptors for the
 * output file stay in the message. After an error all descriptors stay there. Returns 0; -EPROTO if
 * the message or a descriptor is invalid; or -ENOMEM.
 */
must_check int queue_item_new(struct ipc_message *message, struct queue_item **ret);
/* Closes the item's descriptors and frees it. */
void queue_item_free(struct queue_item *item);

/* The most items, and bytes of payloads. With a slow server a dozen targets reach this in minutes.
 */
#define QUEUE_MAX	32
#define QUEUE_BYTES_MAX (256u << 20)
_Static_assert(QUEUE_MAX >= MSG_ENVELOPES_MAX, "the queue takes what the broker has in flight");

/* Initialise to zeros: an empty queue. */
struct queue {
	struct queue_item *items[QUEUE_MAX]; /* the first one is popped next */
	size_t n;
	uint64_t bytes; /* of payloads */
};

/* Returns true if the queue, with the item added, stays within QUEUE_MAX and QUEUE_BYTES_MAX. */
bool queue_has_room(const struct queue *q, const struct queue_item *item);

/*
 * Add an item as the last one (back) or as the first one (front). The queue must have fewer than
 * QUEUE_MAX items. QUEUE_BYTES_MAX is not checked.
 */
void queue_push_back(struct queue *q, struct queue_item *item);
void queue_push_front(struct queue *q, struct queue_item *item);

/* Removes and returns the first item. The queue must not be empty. */
struct queue_item *queue_pop(struct queue *q);

#endif
