#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "daemon/broker.h"
#include "daemon/child.h"
#include "daemon/id.h"
#include "daemon/limit.h"
#include "daemon/log.h"
#include "lib/base/clock.h"
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

#define PAYLOAD_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

struct envelope {
	struct envelope *next;
	struct msg_envelope message;
	struct instance *instance; /* it is kept for it */
	struct ship *ship;
	int fds[2];   /* the payload; that of the file, or -1 */
	bool handed;  /* to the process that runs */
	bool is_over; /* delivered or lost: delivery_sweep frees it */
};

/* ship knows of it. */
static void discard(struct instance *i, enum discard reason)
{
	i->past.chunks.discarded[reason]++;
}

/* Before there is a file of it, if there should be one. */
static void lose(struct instance *i, struct ship *s, enum discard reason,
		 bool to_file)
{
	loss_count(i, s, reason);
	i->past.chunks.unwritten += to_file;
}

/* The next envelope in flight after e, the oldest for NULL. */
static struct envelope *next(const struct broker *b, const struct envelope *e)
{
	struct envelope *n = e == NULL ? b->envelopes : e->next;

	while (n != NULL && n->is_over)
		n = n->next;
	return n;
}

#define FOR_EACH_ENVELOPE(e, b)                                 \
	for (struct envelope *e = next((b), NULL); (e) != NULL; \
	     (e) = next((b), (e)))

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

	log_error("cannot write an envelope in %s: %s", b->output.path,
		  strerror(error));
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
	return e->message.size + e->message.file_size;
}

/* To ship, with a new file where one is wanted. */
static void hand_over(struct broker *b, struct envelope *e)
{
	int fds[3] = {e->fds[0], -1, e->fds[1]};
	size_t n_fds = 1;
	int r;

	if (e->message.to_file) {
		r = output_create(&b->output, e->message.seq,
				  e->message.chunk_id, &fds[1]);
		if (r < 0) {
			unwritten(b, e, -r);
			file_is_over(e);
		}
	}
	if (e->message.to_file)
		n_fds = e->message.file_size > 0 ? 3 : 2;
	child_send(&e->ship->child, &e->message, sizeof(e->message), fds,
		   n_fds);
	close_fd(&fds[1]);
	e->handed = true;
	e->ship->n_handed++;
}

/* The oldest first, as many as it may have. */
static void hand_over_next(struct broker *b, const struct ship *s)
{
	FOR_EACH_ENVELOPE (e, b) {
		if (s->n_handed >= MSG_ENVELOPES_MAX || b->ending)
			return;
		if (e->ship == s && !e->handed)
			hand_over(b, e);
	}
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

		if (e->handed)
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
		if (e->handed || e->instance != i)
			continue;
		lose(i, e->ship, DISCARD_QUEUE_OVERFLOW, e->message.to_file);
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

	while (i != NULL && (b->n_envelopes >= ENVELOPES_MAX ||
			     waiting + size > WAITING_BYTES_MAX)) {
		drop_oldest(b, i);
		i = most_waiting(b, &waiting);
	}
}

bool delivery_is_payload(int fd, uint64_t size)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	return seals >= 0 && (seals & PAYLOAD_SEALS) == PAYLOAD_SEALS &&
	       fstat(fd, &st) == 0 && (uint64_t)st.st_size == size &&
	       size > 0 && size <= CHUNK_V2_SIZE_MAX;
}

/* The second payload is for a file alone, and a V1 profile has none. */
static bool is_chunk(const struct broker *b, const struct instance *i,
		     const struct msg_chunk *m, const int fds[2])
{
	/* The chunk id becomes a file name, the platform a header. */
	if (!delivery_is_payload(fds[0], m->size) ||
	    m->transaction_size >= m->size || !id_is_one(m->chunk_id) ||
	    strncmp(m->platform, i->config.platform, sizeof(m->platform)) != 0)
		return false;
	if (m->file_size == 0)
		return fds[1] < 0;
	return b->output.dir_fd >= 0 && m->transaction_size == 0 &&
	       delivery_is_payload(fds[1], m->file_size);
}

/* NULL: there is no memory, or no descriptor. */
static struct envelope *new_envelope(const int fds[2])
{
	struct envelope *e = calloc(1, sizeof(*e));

	if (e == NULL)
		return NULL;
	e->fds[0] = fcntl(fds[0], F_DUPFD_CLOEXEC, 0);
	e->fds[1] = fds[1] < 0 ? -1 : fcntl(fds[1], F_DUPFD_CLOEXEC, 0);
	if (e->fds[0] >= 0 && (fds[1] < 0 || e->fds[1] >= 0))
		return e;
	for (size_t i = 0; i < array_size(e->fds); i++)
		close_fd(&e->fds[i]);
	free(e);
	return NULL;
}

int delivery_chunk(struct broker *b, struct instance *i,
		   const struct msg_chunk *m, const int fds[2])
{
	struct envelope *e, **end;

	if (!is_chunk(b, i, m, fds))
		return -EPROTO;
	i->past.chunks.made++;
	e = new_envelope(fds);
	if (e == NULL) {
		lose(i, i->ship, DISCARD_MEMORY, b->output.dir_fd >= 0);
		return 0;
	}
	make_room(b, m->size + m->file_size);
	i->past.payload_bytes += m->size;
	i->n_envelopes++;
	e->instance = i;
	e->ship = i->ship;
	e->message = (struct msg_envelope){
		.h = MSG_HEADER(MSG_ENVELOPE, msg_envelope),
		.seq = ++b->last_seq,
		.size = m->size,
		.transaction_size = m->transaction_size,
		.file_size = m->file_size,
		.to_file = b->output.dir_fd >= 0,
		.to_server = m->for_server && i->ship->dsn[0] != '\0',
	};
	memcpy(e->message.chunk_id, m->chunk_id, sizeof(m->chunk_id));
	memcpy(e->message.platform, i->config.platform,
	       sizeof(e->message.platform));
	for (end = &b->envelopes; *end != NULL; end = &(*end)->next)
		;
	*end = e;
	b->n_envelopes++;
	hand_over_next(b, e->ship);
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
		r = output_finish(&b->output, e->message.seq,
				  e->message.chunk_id);
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

/* ship has said on stderr what went wrong; here it is counted. */
static void count_result(const struct envelope *e, enum ship_result result)
{
	switch (result) {
	case SHIP_DONE:
		e->instance->past.chunks.sent++;
		return;
	case SHIP_SPOOLED:
		e->instance->past.chunks.spooled++;
		return;
	case SHIP_SEND_ERROR:
		discard(e->instance, DISCARD_SEND_ERROR);
		return;
	case SHIP_RATE_LIMITED:
		discard(e->instance, DISCARD_RATE_LIMITED);
		return;
	case SHIP_QUEUE_OVERFLOW:
		discard(e->instance, DISCARD_QUEUE_OVERFLOW);
		return;
	case SHIP_INTERNAL_ERROR:
		discard(e->instance, DISCARD_MEMORY);
		return;
	case SHIP_NOTHING:
	case SHIP_NETWORK_ERROR:
		break;
	}
	discard(e->instance, DISCARD_NETWORK_ERROR);
}

static int take_done(void *ctx, struct ipc_message *message)
{
	const struct msg_envelope_done *m = (const void *)message->bytes;
	struct ship *s = ctx;
	struct envelope *e = handed_to(s, m->seq);

	if (e == NULL || e->message.to_file) {
		child_fail(&s->child, "answers what was not asked");
		return 0;
	}
	if (e->message.to_server)
		count_result(e, (enum ship_result)m->result);
	if (m->result == SHIP_DONE)
		s->delivered_ns = clock_mono_ns();
	finish(s->child.broker, e);
	hand_over_next(s->child.broker, s);
	return 0;
}

static int take_spool(void *ctx, struct ipc_message *message)
{
	struct ship *s = ctx;

	const uint64_t sent = s->spool_now.sent;

	memcpy(&s->spool_now, message->bytes, sizeof(s->spool_now));
	if (s->spool_now.sent > sent)
		s->delivered_ns = clock_mono_ns();
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
	const struct msg_limited *m = (const void *)message->bytes;

	return limit_take(ctx, m->until_ns);
}

void ship_on_message(struct child *child, struct ipc_message *m)
{
	static const struct msg_rule rules[] = {
		MSG_RULE(MSG_ENVELOPE_WRITTEN, msg_envelope_written, 0,
			 take_written),
		MSG_RULE(MSG_ENVELOPE_DONE, msg_envelope_done, 0, take_done),
		MSG_RULE(MSG_SPOOL, msg_spool, 0, take_spool),
		MSG_RULE(MSG_LIMITED, msg_limited, 0, take_limited),
		MSG_RULE(MSG_CLOCK, msg_clock, 0, take_clock),
	};

	if (msg_handle(rules, array_size(rules), child, m) < 0)
		child_fail(child, "sends a message that is none");
}

void delivery_finish_ship(struct ship *s, uint64_t timeout_ns)
{
	const struct msg_ship_finish m = {
		.h = MSG_HEADER(MSG_SHIP_FINISH, msg_ship_finish),
		.timeout_ns = timeout_ns,
	};

	child_send(&s->child, &m, sizeof(m), NULL, 0);
}

/* To the process that runs. */
static void send_finish(const struct broker *b, struct ship *s)
{
	const uint64_t now = clock_mono_ns();

	if (b->finish_ns != 0)
		delivery_finish_ship(s, b->finish_ns > now ? b->finish_ns - now
							   : 0);
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
		lose(e->instance, e->ship, DISCARD_SHUTDOWN,
		     e->message.to_file);
	finish(b, e);
}

void delivery_give_up(struct broker *b)
{
	if (b->n_envelopes > 0)
		log_warning("%zu chunk%s still on the way: given up",
			    b->n_envelopes,
			    b->n_envelopes == 1 ? " is" : "s are");
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
