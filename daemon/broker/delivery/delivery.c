#include "daemon/broker/delivery/delivery.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/broker/broker.h"
#include "daemon/broker/children/socket.h"
#include "daemon/broker/control/inspect.h"
#include "daemon/broker/delivery/limit.h"
#include "daemon/broker/delivery/loss.h"
#include "daemon/common/log.h"
#include "daemon/common/random.h"
#include "daemon/msg/discard.h"
#include "daemon/msg/msg_io.h"
#include "lib/base/clock.h"
#include "lib/base/sealed.h"
#include "proto/chunk_v2.h"

/*
 * Chunks on their way: a minute of one for every target of a large host, and
 * as much again while ship is slow. A payload has a few 100 KB as a rule.
 */
#define ENVELOPES_MAX 512

/*
 * And so many bytes of those that ship does not have yet: a payload may have 50
 * MB, and an unwind process that a target has made its own sends as many as it
 * likes.
 */
#define WAITING_BYTES_MAX (UINT64_C(1) << 30)

struct envelope {
	struct envelope *next;
	struct msg_envelope message;
	struct instance *instance; /* it is kept for it */
	struct ship *ship;
	/* The payload; that of the file, or the anchor, or -1. */
	int fds[2];
	bool handed;  /* to the process that runs */
	bool is_over; /* delivered or lost: delivery_sweep frees it */
};

/* Spotlight's own: what becomes of its copy is no loss of the instance's. */
static struct chunk_counts *counts_of(const struct envelope *e)
{
	return e->ship->is_spotlight ? &e->ship->child.broker->spotlight.chunks
				     : &e->instance->past.chunks;
}

/* ship does not know of it. */
static void lose(const struct envelope *e, enum discard reason)
{
	if (e->ship->is_spotlight)
		counts_of(e)->discarded[reason]++;
	else
		loss_count(e->instance, e->ship, reason);
	counts_of(e)->unwritten += e->message.to_file;
}

/* The next envelope in flight after e, the oldest for NULL. */
static struct envelope *next(const struct broker *b, const struct envelope *e)
{
	struct envelope *n = e == NULL ? b->envelopes : e->next;

	while (n != NULL && n->is_over)
		n = n->next;
	return n;
}

#define FOR_EACH_ENVELOPE(e, b) \
	for (struct envelope *e = next((b), NULL); (e) != NULL; (e) = next((b), (e)))

/* NULL: the ship does not have that one. */
static struct envelope *handed_to(const struct ship *s, uint64_t seq)
{
	FOR_EACH_ENVELOPE (e, s->child.broker)
		if (e->message.seq == seq)
			return e->ship == s && e->handed ? e : NULL;
	return NULL;
}

/* Its payload is memory: that does not wait for the end of the turn. */
static void finish(struct broker *b, struct envelope *e)
{
	for (size_t i = 0; i < array_size(e->fds); i++)
		close_fd(&e->fds[i]);
	e->is_over = true;
	b->n_envelopes--;
	b->spotlight.n_envelopes -= e->ship->is_spotlight;
	if (e->handed)
		e->ship->n_handed--;
}

void delivery_sweep(struct broker *b)
{
	struct envelope **at = &b->envelopes;

	while (*at != NULL) {
		struct envelope *e = *at;

		if (!e->is_over) {
			at = &e->next;
			continue;
		}
		*at = e->next;
		e->instance->n_envelopes--;
		free(e);
	}
}

bool delivery_needs(const struct broker *b, const struct ship *s)
{
	FOR_EACH_ENVELOPE (e, b)
		if (e->ship == s)
			return true;
	return false;
}

static void unwritten(struct broker *b, const struct envelope *e, int error)
{
	struct chunk_counts *chunks = &e->instance->past.chunks;

	log_error("cannot write an envelope in %s: %s", b->output.path, strerror(error));
	chunks->unwritten++;
	if (!e->message.to_server)
		chunks->discarded[DISCARD_WRITE_ERROR]++;
}

/* There is nothing more to write, by this ship or another one. */
static void file_is_over(struct envelope *e)
{
	e->message.to_file = false;
	e->message.file_size = 0;
	close_fd(&e->fds[1]);
}

static uint64_t bytes_of(const struct envelope *e)
{
	return e->message.size + e->message.file_size + e->message.anchor_size;
}

/* To ship, with a new file where one is wanted. */
static void hand_over(struct broker *b, struct envelope *e)
{
	int fds[3] = {e->fds[0], -1, e->fds[1]};
	size_t n_fds = 1;
	int r;

	if (e->message.to_file) {
		r = output_create(&b->output, e->message.seq, e->message.chunk_id, &fds[1]);
		if (r < 0) {
			unwritten(b, e, -r);
			file_is_over(e);
		}
	}
	if (e->message.to_file) {
		n_fds = e->message.file_size > 0 ? 3 : 2;
	} else if (e->message.anchor_size > 0) {
		fds[n_fds++] = e->fds[1];
		fds[2] = -1;
	}
	child_send(&e->ship->child, &e->message, sizeof(e->message), fds, n_fds);
	if (e->message.to_file)
		close_fd(&fds[1]);
	e->handed = true;
	e->ship->n_handed++;
}

/* The oldest first, as many as it may have. */
static void hand_over_next(struct broker *b, const struct ship *s)
{
	FOR_EACH_ENVELOPE (e, b) {
		if (s->n_handed >= MSG_ENVELOPES_MAX || b->phase == BROKER_CLOSES)
			return;
		if (e->ship == s && !e->handed)
			hand_over(b, e);
	}
}

/* It holds up others of its instance. */
static bool waits(const struct envelope *e)
{
	return !e->handed && !e->ship->is_spotlight;
}

/* That of which most bytes wait; NULL: none do. *ret_sum: of all. */
static struct instance *most_waiting(const struct broker *b, uint64_t *ret_sum)
{
	struct instance *most = NULL;

	*ret_sum = 0;
	FOR_EACH_ENVELOPE (e, b)
		e->instance->waiting_bytes = 0;
	FOR_EACH_ENVELOPE (e, b) {
		struct instance *i = e->instance;

		if (!waits(e))
			continue;
		*ret_sum += bytes_of(e);
		i->waiting_bytes += bytes_of(e);
		if (most == NULL || i->waiting_bytes > most->waiting_bytes)
			most = i;
	}
	return most;
}

/* What has waited longest of an instance's. */
static void drop_oldest(struct broker *b, struct instance *i)
{
	FOR_EACH_ENVELOPE (e, b) {
		if (!waits(e) || e->instance != i)
			continue;
		lose(e, DISCARD_QUEUE_OVERFLOW);
		finish(b, e);
		return;
	}
}

/*
 * Makes room for payloads of this size: discards chunks of the instance that
 * has the most bytes on the way.
 */
static void make_room(struct broker *b, uint64_t size)
{
	uint64_t waiting;
	struct instance *i = most_waiting(b, &waiting);

	while (i != NULL && (b->n_envelopes - b->spotlight.n_envelopes >= ENVELOPES_MAX ||
			     waiting + size > WAITING_BYTES_MAX)) {
		drop_oldest(b, i);
		i = most_waiting(b, &waiting);
	}
}

bool delivery_is_payload(int fd, uint64_t size)
{
	return size > 0 && size <= CHUNK_V2_SIZE_MAX && sealed_is(fd, size);
}

/* The descriptors of a chunk's message by what they are; -1: there is none. */
struct parts {
	int payload, more, anchor;
};

static bool take_parts(const struct msg_chunk *m, const int fds[IPC_FDS_MAX], struct parts *ret)
{
	size_t n = 0;

	ret->payload = fds[n++];
	ret->more = m->file_size > 0 ? fds[n++] : -1;
	ret->anchor = m->anchor_size > 0 ? fds[n++] : -1;
	return fds[n] < 0;
}

/*
 * The second payload is for a file and Spotlight, the anchor for the latter,
 * and a V1 profile has neither.
 */
static bool is_chunk(const struct broker *b, const struct instance *i, const struct msg_chunk *m,
		     const struct parts *parts)
{
	/* The chunk id becomes a file name, the platform a header. */
	const bool for_spotlight = b->spotlight.ship != NULL;

	if (!delivery_is_payload(parts->payload, m->size) || m->transaction_size >= m->size ||
	    !random_id_is_valid(m->chunk_id) ||
	    strncmp(m->platform, i->config.platform, sizeof(m->platform)) != 0)
		return false;
	if (m->file_size > 0 &&
	    ((b->output.dir_fd < 0 && !for_spotlight) || m->transaction_size > 0 ||
	     !delivery_is_payload(parts->more, m->file_size)))
		return false;
	return m->anchor_size == 0 || (for_spotlight && m->transaction_size == 0 &&
				       delivery_is_payload(parts->anchor, m->anchor_size));
}

/* more: the second descriptor, or -1. NULL: no memory, or no descriptor. */
static struct envelope *new_envelope(int payload, int more)
{
	struct envelope *e = calloc(1, sizeof(*e));

	if (e == NULL)
		return NULL;
	e->fds[0] = fcntl(payload, F_DUPFD_CLOEXEC, 0);
	e->fds[1] = more < 0 ? -1 : fcntl(more, F_DUPFD_CLOEXEC, 0);
	if (e->fds[0] >= 0 && (more < 0 || e->fds[1] >= 0))
		return e;
	for (size_t i = 0; i < array_size(e->fds); i++)
		close_fd(&e->fds[i]);
	free(e);
	return NULL;
}

/* e, which the ship is to deliver, has its own members of the message. */
static void add(struct broker *b, struct envelope *e, struct instance *i, struct ship *s,
		const struct msg_chunk *m)
{
	struct envelope **end = &b->envelopes;

	e->instance = i;
	e->ship = s;
	e->message.h = (struct msg_header)MSG_HEADER(MSG_ENVELOPE);
	e->message.seq = ++b->last_seq;
	e->message.transaction_size = m->transaction_size;
	memcpy(e->message.chunk_id, m->chunk_id, sizeof(m->chunk_id));
	memcpy(e->message.platform, i->config.platform, sizeof(e->message.platform));
	while (*end != NULL)
		end = &(*end)->next;
	*end = e;
	i->n_envelopes++;
	b->n_envelopes++;
	b->spotlight.n_envelopes += s->is_spotlight;
	hand_over_next(b, s);
}

/*
 * More than this Spotlight does not have at a time: the chunks of a moment, of
 * a host's targets. They are memory that nobody else is to miss.
 */
#define SPOTLIGHT_BYTES_MAX (UINT64_C(256) << 20)

static bool spotlight_has_room(const struct broker *b, uint64_t size)
{
	uint64_t bytes = 0;

	FOR_EACH_ENVELOPE (e, b)
		if (e->ship->is_spotlight)
			bytes += bytes_of(e);
	return b->spotlight.n_envelopes < MSG_ENVELOPES_MAX && bytes + size <= SPOTLIGHT_BYTES_MAX;
}

/* A copy of the chunk for Spotlight: the payload that says more, if any. */
static void copy_to_spotlight(struct broker *b, struct instance *i, const struct msg_chunk *m,
			      const struct parts *parts)
{
	struct spotlight *to = &b->spotlight;
	const bool has_more = m->file_size > 0;
	const uint64_t size = has_more ? m->file_size : m->size;
	struct envelope *e;

	if (!spotlight_has_room(b, size + m->anchor_size)) {
		to->chunks.discarded[DISCARD_QUEUE_OVERFLOW]++;
		return;
	}
	e = new_envelope(has_more ? parts->more : parts->payload, parts->anchor);
	if (e == NULL) {
		to->chunks.discarded[DISCARD_MEMORY]++;
		return;
	}
	e->message.size = size;
	e->message.anchor_size = m->anchor_size;
	e->message.to_server = true;
	add(b, e, i, to->ship, m);
}

static void take_chunk(struct broker *b, struct instance *i, const struct msg_chunk *m,
		       const struct parts *parts)
{
	const bool to_file = b->output.dir_fd >= 0;
	struct envelope *e;

	e = new_envelope(parts->payload, to_file ? parts->more : -1);
	if (e == NULL) {
		loss_count(i, i->ship, DISCARD_MEMORY);
		i->past.chunks.unwritten += to_file;
		return;
	}
	e->message.size = m->size;
	e->message.file_size = to_file ? m->file_size : 0;
	e->message.to_file = to_file;
	e->message.to_server = m->for_server && i->ship->dsn[0] != '\0';
	make_room(b, bytes_of(e));
	i->past.payload_bytes += m->size;
	add(b, e, i, i->ship, m);
}

int delivery_chunk(struct broker *b, struct instance *i, const struct msg_chunk *m,
		   const int fds[IPC_FDS_MAX])
{
	struct parts parts;

	if (!take_parts(m, fds, &parts) || !is_chunk(b, i, m, &parts))
		return -EPROTO;
	i->past.chunks.made++;
	take_chunk(b, i, m, &parts);
	if (b->spotlight.ship != NULL)
		copy_to_spotlight(b, i, m, &parts);
	return 0;
}

/* ship has written its file, or could not. */
static int take_written(void *ctx, struct ipc_message *message)
{
	const struct msg_envelope_written *m = (const void *)message->bytes;
	struct ship *s = ctx;
	struct broker *b = s->child.broker;
	struct envelope *e = handed_to(s, m->seq);
	int error = m->error, r;

	if (e == NULL || !e->message.to_file) {
		child_fail(&s->child, "writes what was not asked");
		return 0;
	}
	if (error == 0) {
		r = output_finish(&b->output, e->message.seq, e->message.chunk_id);
		error = -r;
	}
	if (error == 0) {
		e->instance->past.chunks.written++;
		b->files_written++;
	} else {
		output_remove(&b->output, e->message.seq, e->message.chunk_id);
		unwritten(b, e, error);
	}
	file_is_over(e);
	return 0;
}

static bool is_result(uint32_t result)
{
	return result <= SHIP_SPOOLED || (result > DISCARD_FAULTS_END && result < DISCARD_N);
}

/* ship has said on stderr what went wrong; here it is counted. */
static void count_result(struct chunk_counts *chunks, uint32_t result)
{
	if (result == SHIP_DONE)
		chunks->sent++;
	else if (result == SHIP_SPOOLED)
		chunks->spooled++;
	else
		chunks->discarded[result]++;
}

static int take_done(void *ctx, struct ipc_message *message)
{
	const struct msg_envelope_done *m = (const void *)message->bytes;
	struct ship *s = ctx;
	struct envelope *e = handed_to(s, m->seq);

	if (e == NULL || e->message.to_file || !is_result(m->result)) {
		child_fail(&s->child, "answers what was not asked");
		return 0;
	}
	if (e->message.to_server)
		count_result(counts_of(e), m->result);
	if (m->result == SHIP_DONE)
		s->delivered_ns = clock_mono_ns();
	finish(s->child.broker, e);
	hand_over_next(s->child.broker, s);
	return 0;
}

static int take_spool(void *ctx, struct ipc_message *message)
{
	const struct msg_spool *m = (const void *)message->bytes;
	struct ship *s = ctx;

	if (m->counts.sent > s->spool_now.sent)
		s->delivered_ns = clock_mono_ns();
	s->spool_now = m->counts;
	return 0;
}

static int take_clock(void *ctx, struct ipc_message *message)
{
	const struct msg_clock *m = (const void *)message->bytes;
	struct ship *s = ctx;

	s->clock_ahead_s = m->ahead_s;
	return 0;
}

static int take_limited(void *ctx, struct ipc_message *message)
{
	const struct msg_number *m = (const void *)message->bytes;

	return limit_take(ctx, m->n);
}

static int take_probed(void *ctx, struct ipc_message *message)
{
	return inspect_probed(ctx, (const void *)message->bytes);
}

void ship_on_message(struct child *child, struct ipc_message *m)
{
	static const struct msg_rule rules[] = {
		{MSG_ENVELOPE_WRITTEN, take_written},
		{MSG_ENVELOPE_DONE, take_done},
		{MSG_SPOOL, take_spool},
		{MSG_LIMITED, take_limited},
		{MSG_CLOCK, take_clock},
		{MSG_PROBED, take_probed},
	};

	if (msg_handle(rules, array_size(rules), child, m) < 0)
		child_fail(child, "sends a message that is none");
}

void delivery_finish_ship(struct ship *s, uint64_t timeout_ns)
{
	const struct msg_number m = {
		.h = MSG_HEADER(MSG_SHIP_FINISH),
		.n = timeout_ns,
	};

	child_send(&s->child, &m, sizeof(m), NULL, 0);
}

/* To the process that runs. */
static void send_finish(const struct broker *b, struct ship *s)
{
	const uint64_t now = clock_mono_ns();

	if (b->finish_ns != 0)
		delivery_finish_ship(s, b->finish_ns > now ? b->finish_ns - now : 0);
}

void delivery_finish(struct broker *b, uint64_t timeout_ns)
{
	b->finish_ns = clock_mono_ns() + timeout_ns;
	for (size_t i = 0; i < b->n_ships; i++)
		send_finish(b, b->ships[i]);
}

void delivery_resend(struct broker *b, struct ship *s)
{
	s->n_handed = 0;
	s->clock_ahead_s = 0;
	FOR_EACH_ENVELOPE (e, b)
		if (e->ship == s)
			e->handed = false;
	hand_over_next(b, s);
	send_finish(b, s);
	loss_tell(s);
}

static void give_up(struct broker *b, struct envelope *e)
{
	if (e->message.to_file)
		output_remove(&b->output, e->message.seq, e->message.chunk_id);
	if (e->message.to_file || e->message.to_server)
		lose(e, DISCARD_SHUTDOWN);
	finish(b, e);
}

void delivery_give_up(struct broker *b)
{
	const size_t n = b->n_envelopes - b->spotlight.n_envelopes;

	if (n > 0)
		log_warning("%zu chunk%s still on the way: given up", n, n == 1 ? " is" : "s are");
	FOR_EACH_ENVELOPE (e, b)
		give_up(b, e);
	delivery_sweep(b);
}

void delivery_ship_gone(struct broker *b, const struct ship *s)
{
	FOR_EACH_ENVELOPE (e, b)
		if (e->ship == s)
			give_up(b, e);
}
