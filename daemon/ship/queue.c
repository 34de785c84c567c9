#include "daemon/ship/queue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/common/random.h"
#include "lib/base/sealed.h"
#include "lib/ship/spool.h"
#include "proto/sdk.h"

static int check_envelope(const struct msg_envelope *m)
{
	if (m->to_file > 1 || m->to_server > 1 || m->size == 0 || m->size > CHUNK_V2_SIZE_MAX ||
	    m->transaction_size >= m->size || m->file_size > CHUNK_V2_SIZE_MAX ||
	    (m->anchor_size > 0 && (m->to_file || m->file_size > 0 || m->transaction_size > 0)) ||
	    m->anchor_size > CHUNK_V2_SIZE_MAX || !random_id_is_valid(m->chunk_id) ||
	    m->platform[0] == '\0' || memchr(m->platform, '\0', sizeof(m->platform)) == NULL)
		return -EPROTO;
	return 0;
}

int queue_item_new(struct ipc_message *message, struct queue_item **ret)
{
	const struct msg_envelope *m = (const void *)message->bytes;
	struct queue_item *item;

	/* The sizes are those of the message, and the seals keep them. */
	if (check_envelope(m) < 0 ||
	    message->n_fds !=
		    1 + m->to_file + (size_t)(m->file_size > 0) + (size_t)(m->anchor_size > 0) ||
	    !sealed_is(message->fds[0], m->size) ||
	    (m->file_size > 0 && !sealed_is(message->fds[2], m->file_size)) ||
	    (m->anchor_size > 0 && !sealed_is(message->fds[1], m->anchor_size)))
		return -EPROTO;
	item = calloc(1, sizeof(*item));
	if (item == NULL)
		return -ENOMEM;
	memcpy(item->chunk_id, m->chunk_id, sizeof(item->chunk_id));
	memcpy(item->platform, m->platform, sizeof(item->platform));
	item->seq = m->seq;
	item->package = (struct package){
		.sdk_name = SDK_NAME,
		.sdk_version = SDK_VERSION,
		.platform = item->platform,
		.payload_fd = ipc_take_fd(message, 0),
		.payload_size = m->size,
		.transaction_size = m->transaction_size,
		.anchor_size = m->anchor_size,
		.anchor_fd = m->anchor_size > 0 ? ipc_take_fd(message, 1) : -1,
	};
	/* A transaction's event_id is its chunk id. */
	if (m->transaction_size > 0 || m->anchor_size > 0)
		(void)!spool_id_parse(m->chunk_id, item->package.event_id);
	else
		random_bytes(item->package.event_id, sizeof(item->package.event_id));
	*ret = item;
	return 0;
}

void queue_item_free(struct queue_item *item)
{
	close_fd(&item->package.payload_fd);
	if (item->package.anchor_size > 0)
		close_fd(&item->package.anchor_fd);
	free(item);
}

bool queue_has_room(const struct queue *q, const struct queue_item *item)
{
	return q->n < QUEUE_MAX && q->bytes + item->package.payload_size <= QUEUE_BYTES_MAX;
}

static void insert(struct queue *q, size_t at, struct queue_item *item)
{
	assert(q->n < QUEUE_MAX);
	memmove(q->items + at + 1, q->items + at, (q->n - at) * sizeof(q->items[0]));
	q->items[at] = item;
	q->n++;
	q->bytes += item->package.payload_size;
}

void queue_push_back(struct queue *q, struct queue_item *item)
{
	insert(q, q->n, item);
}

void queue_push_front(struct queue *q, struct queue_item *item)
{
	insert(q, 0, item);
}

struct queue_item *queue_pop(struct queue *q)
{
	struct queue_item *item = q->items[0];

	assert(q->n > 0);
	q->n--;
	q->bytes -= item->package.payload_size;
	memmove(q->items, q->items + 1, q->n * sizeof(q->items[0]));
	return item;
}
