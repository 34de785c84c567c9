#include "daemon/broker/delivery/delivery.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/broker/children/ship.h"
#include "daemon/common/log.h"
#include "daemon/common/random.h"
#include "daemon/msg/discard.h"
#include "daemon/msg/msg_ship.h"
#include "daemon/msg/msg_unwind.h"
#include "lib/base/clock.h"
#include "lib/base/ipc.h"
#include "lib/base/sealed.h"
#include "lib/base/token_bucket.h"
#include "proto/chunk_v2.h"

/*
 * Envelopes in flight, without copies for Spotlight: those of one minute, a chunk of each profiled
 * process of a large host, and as many again if a ship is slow. A payload usually has some 100 KB.
 */
#define ENVELOPES_MAX 512

/*
 * Bytes of memory of the envelopes that no ship has yet. A payload may have 50 MB, and an unwind
 * process that a profiled process has taken over can send any number.
 */
#define WAITING_BYTES_MAX (UINT64_C(1) << 30)

struct envelope {
	struct envelope *next;
	struct msg_envelope message;
	struct chunk_source *source; /* not freed before: n_envelopes counts this one */
	struct ship *ship;
	/* The payload; and the payload of the file, or the anchor, or -1. */
	int fds[2];
	uint64_t memory[2]; /* sealed_memory() of each of fds; 0: there is no such descriptor */
	bool handed;	    /* sent to the present process of the ship */
	bool is_over;	    /* delivered or lost: delivery_sweep() frees it */
};

/*
 * Returns the counters for an envelope: Spotlight has its own, since a lost copy is no loss of
 * the instance.
 */
static struct chunk_counts *counts_of(struct delivery *d, const struct envelope *e)
{
	return e->ship->is_spotlight ? &d->spotlight : &e->source->chunks;
}

/* Returns the number of envelopes in flight that are copies for Spotlight. */
static size_t n_copies(const struct delivery *d)
{
	return d->children->spotlight == NULL ? 0 : d->children->spotlight->n_in_flight;
}

void delivery_lost(struct chunk_source *source, struct ship *s, uint32_t reason)
{
	const struct options *o = &s->child.children->state->options;
	const enum envelope_kind kind = o->transaction != NULL ? ENVELOPE_V1 : ENVELOPE_CHUNK;

	source->chunks.discarded[reason]++;
	if (s->dsn[0] == '\0')
		return;
	s->unreported.quantity[kind][discard_report(reason)]++;
	/*
	 * Otherwise the losses are sent after the ship's next answer (delivery_done()). If the ship
	 * gets no processor time, a message for each loss would fill its socket.
	 */
	if (s->n_handed == 0)
		ship_report_lost(s);
}

/* Counts an envelope as lost that ship does not have. */
static void count_loss(struct delivery *d, const struct envelope *e, enum discard reason)
{
	if (e->ship->is_spotlight)
		counts_of(d, e)->discarded[reason]++;
	else
		delivery_lost(e->source, e->ship, reason);
	counts_of(d, e)->not_written += e->message.to_file;
}

/* The next envelope in flight after e, the oldest for NULL. */
static struct envelope *next_envelope(const struct delivery *d, const struct envelope *e)
{
	struct envelope *n = e == NULL ? d->envelopes : e->next;

	while (n != NULL && n->is_over)
		n = n->next;
	return n;
}

#define FOR_EACH_ENVELOPE(e, d)                                          \
	for (struct envelope *e = next_envelope((d), NULL); (e) != NULL; \
	     (e) = next_envelope((d), (e)))

/* Returns the envelope seq if s has it; else NULL. */
static struct envelope *handed_to(const struct delivery *d, const struct ship *s, uint64_t seq)
{
	FOR_EACH_ENVELOPE (e, d)
		if (e->message.seq == seq)
			return e->ship == s && e->handed ? e : NULL;
	return NULL;
}

/*
 * Ends an envelope. Its payload, which is memory, is released at once; the struct is freed at
 * the end of the turn.
 */
static void end_envelope(struct delivery *d, struct envelope *e)
{
	for (size_t i = 0; i < array_size(e->fds); i++)
		close_fd(&e->fds[i]);
	e->is_over = true;
	d->n_in_flight--;
	e->ship->n_in_flight--;
	if (e->handed)
		e->ship->n_handed--;
}

void delivery_sweep(struct delivery *d)
{
	struct envelope **at = &d->envelopes;

	while (*at != NULL) {
		struct envelope *e = *at;

		if (!e->is_over) {
			at = &e->next;
			continue;
		}
		*at = e->next;
		e->source->n_envelopes--;
		free(e);
	}
}

static void count_write_error(struct delivery *d, const struct envelope *e, int error)
{
	struct chunk_counts *chunks = &e->source->chunks;

	log_error("cannot write an envelope in %s: %s; the output lacks its chunk", d->output.path,
		  strerror(error));
	chunks->not_written++;
	if (!e->message.to_server)
		chunks->discarded[DISCARD_WRITE_ERROR]++;
}

/* The file is written or has failed: no ship writes it again. */
static void end_file(struct envelope *e)
{
	e->message.to_file = false;
	e->message.file_size = 0;
	close_fd(&e->fds[1]);
	e->memory[1] = 0;
}

/* Returns the bytes of memory that the envelope keeps. */
static uint64_t bytes_of(const struct envelope *e)
{
	return e->memory[0] + e->memory[1];
}

/* Sends the envelope to its ship, with a new file if one is to be written. */
static void send_envelope(struct delivery *d, struct envelope *e)
{
	int fds[3] = {e->fds[0], -1, e->fds[1]};
	size_t n_fds = 1;
	int r;

	if (e->message.to_file) {
		r = output_create(&d->output, e->message.seq, e->message.chunk_id, &fds[1]);
		if (r < 0) {
			count_write_error(d, e, -r);
			end_file(e);
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

/* Sends envelopes to the ship, the oldest first, up to MSG_ENVELOPES_MAX at a time. */
static void send_envelopes(struct delivery *d, const struct ship *s)
{
	FOR_EACH_ENVELOPE (e, d) {
		if (s->n_handed >= MSG_ENVELOPES_MAX || d->state->phase == PHASE_CLOSING)
			return;
		if (e->ship == s && !e->handed)
			send_envelope(d, e);
	}
}

/* Returns true if the envelope waits for its ship. Copies for Spotlight are limited separately. */
static bool is_waiting(const struct envelope *e)
{
	return !e->handed && !e->ship->is_spotlight;
}

/*
 * Returns the source with the most bytes waiting; NULL: none. *ret_sum: waiting bytes of all
 * sources.
 */
static struct chunk_source *most_waiting(const struct delivery *d, uint64_t *ret_sum)
{
	struct chunk_source *most = NULL;

	*ret_sum = 0;
	FOR_EACH_ENVELOPE (e, d)
		e->source->waiting_bytes = 0;
	FOR_EACH_ENVELOPE (e, d) {
		struct chunk_source *i = e->source;

		if (!is_waiting(e))
			continue;
		*ret_sum += bytes_of(e);
		i->waiting_bytes += bytes_of(e);
		if (most == NULL || i->waiting_bytes > most->waiting_bytes)
			most = i;
	}
	return most;
}

/* Drops the envelope of the source that has waited longest. */
static void drop_oldest(struct delivery *d, const struct chunk_source *i)
{
	FOR_EACH_ENVELOPE (e, d) {
		if (!is_waiting(e) || e->source != i)
			continue;
		count_loss(d, e, DISCARD_QUEUE_OVERFLOW);
		end_envelope(d, e);
		return;
	}
}

/*
 * Makes room for so many bytes of memory: drops envelopes of the source with the most bytes
 * waiting.
 */
static void make_room(struct delivery *d, uint64_t bytes)
{
	uint64_t waiting;
	struct chunk_source *i = most_waiting(d, &waiting);

	while (i != NULL && (d->n_in_flight - n_copies(d) >= ENVELOPES_MAX ||
			     waiting + bytes > WAITING_BYTES_MAX)) {
		drop_oldest(d, i);
		i = most_waiting(d, &waiting);
	}
}

bool delivery_is_payload(int fd, uint64_t size)
{
	return size > 0 && size <= CHUNK_V2_SIZE_MAX && sealed_is(fd, size);
}

struct payload {
	int fd; /* -1: missing */
	uint64_t size;
	uint64_t memory; /* sealed_memory(); 0: missing, or not a valid payload */
};

/* What comes with a chunk's message. */
struct payloads {
	struct payload payload, more, anchor;
};

static struct payload take_payload(int fd, uint64_t size)
{
	const bool is_valid = delivery_is_payload(fd, size);

	return (struct payload){
		.fd = fd, .size = size, .memory = is_valid ? sealed_memory(fd, size) : 0};
}

static bool take_payloads(const struct msg_chunk *m, const int fds[IPC_FDS_MAX],
			  struct payloads *ret)
{
	size_t n = 0;

	ret->payload = take_payload(fds[n++], m->size);
	ret->more = take_payload(m->file_size > 0 ? fds[n++] : -1, m->file_size);
	ret->anchor = take_payload(m->anchor_size > 0 ? fds[n++] : -1, m->anchor_size);
	return fds[n] < 0;
}

/*
 * Returns true if the message of a chunk and its payloads are valid. The second payload is for a
 * file or Spotlight, the anchor for Spotlight; a V1 profile has neither. A chunk that is not for
 * the server must go into a file, or else it would never get an outcome.
 */
static bool is_chunk(const struct delivery *d, const struct ship *ship, const char *platform,
		     const struct msg_chunk *m, const struct payloads *payloads)
{
	/* The chunk id becomes part of a file name, the platform part of a header. */
	const bool for_spotlight = d->children->spotlight != NULL;

	if (payloads->payload.memory == 0 || m->transaction_size >= m->size ||
	    !random_id_is_valid(m->chunk_id) ||
	    (m->for_server == 0 && ship->dsn[0] != '\0' && !delivery_has_files(d)) ||
	    strncmp(m->platform, platform, sizeof(m->platform)) != 0)
		return false;
	if (m->file_size > 0 && ((!delivery_has_files(d) && !for_spotlight) ||
				 m->transaction_size > 0 || payloads->more.memory == 0))
		return false;
	return m->anchor_size == 0 ||
	       (for_spotlight && m->transaction_size == 0 && payloads->anchor.memory > 0);
}

/*
 * Makes an envelope with duplicates of the descriptors. Of the two payloads the second one may be
 * missing. Returns NULL if memory or descriptors are short.
 */
static struct envelope *new_envelope(const struct payload *payload, const struct payload *more)
{
	struct envelope *e = calloc(1, sizeof(*e));

	if (e == NULL)
		return NULL;
	e->fds[0] = fcntl(payload->fd, F_DUPFD_CLOEXEC, 0);
	e->fds[1] = more->fd < 0 ? -1 : fcntl(more->fd, F_DUPFD_CLOEXEC, 0);
	e->memory[0] = payload->memory;
	e->memory[1] = more->memory;
	if (e->fds[0] >= 0 && (more->fd < 0 || e->fds[1] >= 0))
		return e;
	for (size_t i = 0; i < array_size(e->fds); i++)
		close_fd(&e->fds[i]);
	free(e);
	return NULL;
}

/*
 * Adds an envelope for the ship. The caller has set those members of e->message that depend on
 * the receiver.
 */
static void add_envelope(struct delivery *d, struct envelope *e, struct chunk_source *source,
			 struct ship *s, const struct msg_chunk *m)
{
	struct envelope **end = &d->envelopes;

	e->source = source;
	e->ship = s;
	e->message.h = (struct msg_header)MSG_HEADER(MSG_ENVELOPE);
	e->message.seq = ++d->last_seq;
	e->message.transaction_size = m->transaction_size;
	memcpy(e->message.chunk_id, m->chunk_id, sizeof(m->chunk_id));
	/* Only the text, which is_chunk() has compared: unwind may send any bytes after its NUL. */
	(void)snprintf(e->message.platform, sizeof(e->message.platform), "%s", m->platform);
	while (*end != NULL)
		end = &(*end)->next;
	*end = e;
	source->n_envelopes++;
	d->n_in_flight++;
	s->n_in_flight++;
	send_envelopes(d, s);
}

/*
 * Bytes of memory of copies for Spotlight that are in flight: the chunks of all profiled processes
 * of a host, which are made at about the same time. The limit bounds the memory that other programs
 * would miss.
 */
#define SPOTLIGHT_BYTES_MAX (UINT64_C(256) << 20)

static bool spotlight_has_room(const struct delivery *d, uint64_t memory)
{
	uint64_t bytes = 0;

	FOR_EACH_ENVELOPE (e, d)
		if (e->ship->is_spotlight)
			bytes += bytes_of(e);
	return n_copies(d) < MSG_ENVELOPES_MAX && bytes + memory <= SPOTLIGHT_BYTES_MAX;
}

/*
 * Sends a copy of the chunk to Spotlight: the second payload, which has more details, if there
 * is one.
 */
static void copy_to_spotlight(struct delivery *d, struct chunk_source *source,
			      const struct msg_chunk *m, const struct payloads *payloads)
{
	const struct payload *payload = m->file_size > 0 ? &payloads->more : &payloads->payload;
	struct envelope *e;

	if (!spotlight_has_room(d, payload->memory + payloads->anchor.memory)) {
		d->spotlight.discarded[DISCARD_QUEUE_OVERFLOW]++;
		return;
	}
	e = new_envelope(payload, &payloads->anchor);
	if (e == NULL) {
		d->spotlight.discarded[DISCARD_MEMORY]++;
		return;
	}
	e->message.size = payload->size;
	e->message.anchor_size = m->anchor_size;
	e->message.to_server = true;
	add_envelope(d, e, source, d->children->spotlight, m);
}

static void take_chunk(struct delivery *d, struct chunk_source *source, struct ship *ship,
		       const struct msg_chunk *m, const struct payloads *payloads)
{
	static const struct payload none = {.fd = -1};
	const bool to_file = delivery_has_files(d);
	struct envelope *e;

	e = new_envelope(&payloads->payload, to_file ? &payloads->more : &none);
	if (e == NULL) {
		delivery_lost(source, ship, DISCARD_MEMORY);
		source->chunks.not_written += to_file;
		return;
	}
	e->message.size = m->size;
	e->message.file_size = to_file ? m->file_size : 0;
	e->message.to_file = to_file;
	e->message.to_server = m->for_server && ship->dsn[0] != '\0';
	make_room(d, bytes_of(e));
	source->payload_bytes += m->size;
	add_envelope(d, e, source, ship, m);
}

/* Returns the memory of a chunk; UINT64_MAX: a payload has holes. */
static uint64_t memory_of(const struct payloads *p)
{
	uint64_t sum;

	return __builtin_add_overflow(p->payload.memory, p->more.memory, &sum) ||
			       __builtin_add_overflow(sum, p->anchor.memory, &sum)
		       ? UINT64_MAX
		       : sum;
}

/*
 * Takes a chunk of this many bytes of memory from the budget of the source. Returns false if the
 * budget is used up, or the chunk has more memory than may wait. A large chunk leaves a debt.
 */
static bool budget_take(const struct delivery *d, struct chunk_source *source, uint64_t bytes)
{
	const uint64_t chunk_ns = d->state->options.config.chunk_seconds * NS_PER_SEC;
	const uint64_t size_ns = CHUNK_BUDGET_HELD * chunk_ns + CHUNK_BUDGET_LAG_NS;
	const uint64_t one_ns = chunk_ns / CHUNK_BUDGET_RATE, now_ns = clock_mono_ns();

	if (bytes > WAITING_BYTES_MAX ||
	    !token_bucket_holds(source->full_ns, size_ns, now_ns, one_ns))
		return false;
	token_bucket_take(&source->full_ns, now_ns,
			  max_u64(one_ns, bytes * NS_PER_SEC / CHUNK_BUDGET_BYTES));
	return true;
}

int delivery_chunk(struct delivery *d, struct chunk_source *source, struct ship *ship,
		   const char *platform, const struct msg_chunk *m, const int fds[IPC_FDS_MAX])
{
	struct payloads payloads;

	if (!take_payloads(m, fds, &payloads) || !is_chunk(d, ship, platform, m, &payloads))
		return -EPROTO;
	source->chunks.made++;
	if (!budget_take(d, source, memory_of(&payloads))) {
		delivery_lost(source, ship, DISCARD_CHUNK_BUDGET);
		source->chunks.not_written += delivery_has_files(d);
		d->spotlight.discarded[DISCARD_CHUNK_BUDGET] += d->children->spotlight != NULL;
		return -EDQUOT;
	}
	take_chunk(d, source, ship, m, &payloads);
	if (d->children->spotlight != NULL)
		copy_to_spotlight(d, source, m, &payloads);
	return 0;
}

void delivery_written(struct delivery *d, struct ship *s, const struct msg_envelope_written *m)
{
	struct envelope *e = handed_to(d, s, m->seq);
	int error = m->error, r;

	if (e == NULL || !e->message.to_file) {
		child_fail(&s->child, "reports a write that was not requested");
		return;
	}
	if (error == 0) {
		r = output_finish(&d->output, e->message.seq, e->message.chunk_id);
		error = -r;
	}
	if (error == 0) {
		e->source->chunks.written++;
		d->files_written++;
	} else {
		output_remove(&d->output, e->message.seq, e->message.chunk_id);
		count_write_error(d, e, error);
	}
	end_file(e);
}

static bool is_result(uint32_t result)
{
	return result <= SHIP_SPOOLED || (result > DISCARD_FAULTS_END && result < DISCARD_N);
}

/* Counts the outcome that ship reports. ship has logged errors. */
static void count_result(struct chunk_counts *chunks, uint32_t result)
{
	if (result == SHIP_DONE)
		chunks->sent++;
	else if (result == SHIP_SPOOLED)
		chunks->spooled++;
	else
		chunks->discarded[result]++;
}

void delivery_done(struct delivery *d, struct ship *s, const struct msg_envelope_done *m)
{
	struct envelope *e = handed_to(d, s, m->seq);

	if (e == NULL || e->message.to_file || !is_result(m->result)) {
		child_fail(&s->child, "answers a request that was not made");
		return;
	}
	if (e->message.to_server)
		count_result(counts_of(d, e), m->result);
	if (m->result == SHIP_DONE)
		s->delivered_ns = clock_mono_ns();
	end_envelope(d, e);
	send_envelopes(d, s);
	ship_report_lost(s);
}

/* Sends the deadline, if there is one, to the ship's present process. */
static void send_finish(const struct delivery *d, struct ship *s)
{
	const uint64_t now = clock_mono_ns();

	if (d->finish_ns != 0)
		ship_ask_to_finish(s, d->finish_ns > now ? d->finish_ns - now : 0);
}

void delivery_finish(struct delivery *d, uint64_t timeout_ns)
{
	d->finish_ns = clock_mono_ns() + timeout_ns;
	for (size_t i = 0; i < d->children->n_ships; i++) {
		struct ship *s = d->children->ships[i];

		if (child_is_over(&s->child)) {
			delivery_ship_gone(d, s);
			continue;
		}
		/* On a second signal to end there may be no answer any more. */
		ship_report_lost(s);
		send_finish(d, s);
	}
}

void delivery_resend(struct delivery *d, struct ship *s)
{
	s->n_handed = 0;
	s->clock_ahead_s = 0;
	FOR_EACH_ENVELOPE (e, d)
		if (e->ship == s)
			e->handed = false;
	send_envelopes(d, s);
	send_finish(d, s);
	ship_report_lost(s);
}

static void give_up_envelope(struct delivery *d, struct envelope *e)
{
	if (e->message.to_file)
		output_remove(&d->output, e->message.seq, e->message.chunk_id);
	if (e->message.to_file || e->message.to_server)
		count_loss(d, e, DISCARD_SHUTDOWN);
	end_envelope(d, e);
}

void delivery_give_up(struct delivery *d)
{
	const size_t n = d->n_in_flight - n_copies(d);

	if (n > 0)
		log_warning("%zu chunk%s lost: not delivered before the end of sentry-profd "
			    "(shutdown_timeout, --shutdown-timeout)",
			    n, n == 1 ? " is" : "s are");
	FOR_EACH_ENVELOPE (e, d)
		give_up_envelope(d, e);
	delivery_sweep(d);
}

void delivery_ship_gone(struct delivery *d, const struct ship *s)
{
	FOR_EACH_ENVELOPE (e, d)
		if (e->ship == s)
			give_up_envelope(d, e);
}
