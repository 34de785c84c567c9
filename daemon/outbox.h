/*
 * Envelopes on their way to the server: the queue that they wait in, one
 * request at a time, the server's limits, and what became of each.
 */
#ifndef DAEMON_OUTBOX_H
#define DAEMON_OUTBOX_H

#include <stdbool.h>

#include "daemon/msg.h"
#include "lib/base/buf.h"
#include "lib/ship/package.h"
#include "lib/ship/transport.h"
#include "proto/ratelimit.h"

/*
 * Some minutes of a dozen targets, if the server is slow. Payloads lie in
 * memory: their sum is bounded, too.
 */
#define OUTBOX_MAX	 32
#define OUTBOX_BYTES_MAX (256u << 20)
_Static_assert(OUTBOX_MAX >= MSG_ENVELOPES_MAX, "the broker would overflow it");

/* An envelope. From malloc; the payload's descriptor is its own. */
struct sending {
	struct package package; /* its platform is the one below */
	struct msg_envelope_done done;
	char chunk_id[MSG_ID_SIZE];
	char platform[MSG_TEXT_MAX];
};

/* Called once for each envelope, which is then the callee's to free. */
typedef void (*outbox_fn)(struct sending *s, enum ship_result result);

struct outbox {
	struct transport *transport;
	outbox_fn done;
	struct dsn dsn;
	bool has_dsn;
	struct ratelimit limits;
	struct sending *current; /* the transport has its body */
	struct buf body;
	struct sending *queue[OUTBOX_MAX]; /* oldest first */
	size_t n_queue;
	uint64_t queue_bytes;
};

/* The transport stays the caller's, and must live as long. */
void outbox_init(struct outbox *o, struct transport *transport, outbox_fn done);

/* Where to; NULL: nowhere, envelopes end with SHIP_NOTHING. Lifts limits. */
void outbox_set_dsn(struct outbox *o, const struct dsn *dsn);

/* Takes s. If there is no room the oldest that waits has to go. */
void outbox_add(struct outbox *o, struct sending *s);

/* Does what can be done without waiting; transport_wait says when to. */
void outbox_step(struct outbox *o);

/*
 * Goes on until everything is sent or timeout_ns have passed. What is left
 * then is given up without a word to done.
 */
void outbox_finish(struct outbox *o, uint64_t timeout_ns);

#endif
