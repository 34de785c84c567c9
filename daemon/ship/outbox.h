/*
 * Envelopes on their way to the server: the queue that they wait in, one
 * request at a time, the server's limits, and what became of each.
 *
 * A server that does not answer is tried again after a while (lib/ship/
 * backoff.h). Until then whatever comes is put on the disk, if there is a
 * spool, and else stays in the queue as long as there is room. New ones go
 * before those of the spool, which go one by one, with a pause in between.
 *
 * To a Spotlight (struct destination) an envelope is sent twice at most.
 *
 * What is lost is told to the server, too (lib/ship/reports.h). A limit on
 * chunks does not hold a report back, one on everything does.
 */
#ifndef DAEMON_SHIP_OUTBOX_H
#define DAEMON_SHIP_OUTBOX_H

#include <stdbool.h>

#include "daemon/ship/destination.h"
#include "daemon/ship/spooled.h"
#include "daemon/ship/waiting.h"
#include "lib/base/buf.h"
#include "lib/ship/package.h"
#include "lib/ship/transport.h"
#include "proto/chunk_v2.h"

/* Incompressible bytes become a little more by compression. */
#define OUTBOX_BODY_MAX (CHUNK_V2_SIZE_MAX + (1u << 20))

/* The envelope's header, and two items with theirs. */
_Static_assert(PACKAGE_UNPACKED_MAX >= CHUNK_V2_SIZE_MAX + 3 * ENVELOPE_HEADER_SIZE,
	       "what is put into the spool comes out of it");

/* What the server answered to a probe, or that it did not. */
typedef void (*outbox_probed_fn)(const struct transport_answer *answer);

/* A request that has no chunk. */
enum outbox_alone { ALONE_NOTHING, ALONE_REPORT, ALONE_PROBE };

/*
 * Called once for each envelope, which is then the callee's to free. result: as
 * in struct msg_envelope_done.
 */
typedef void (*outbox_fn)(struct sending *s, uint32_t result);

struct outbox {
	struct transport *transport;
	outbox_fn done;
	struct destination to;
	uint64_t limited_told_ns; /* what the broker knows of its limits */
	int64_t clock_told_s;	  /* and of its clock */
	struct spooled spooled;

	/* The transport has the body of this one, or of one of the spool, */
	struct sending *current;
	enum outbox_alone alone; /* or one of these. */
	outbox_probed_fn probed; /* a probe is asked for; NULL: none is */
	bool last_due;		 /* a report does not wait for its time any more */
	struct buf body;

	struct waiting waiting;
	uint64_t finish_ns; /* by clock_boot_ns; 0: go on */
	size_t unsent;	    /* that were there then, or came later */
};

/* The transport stays the caller's, and must live as long. No spool yet. */
void outbox_init(struct outbox *o, struct transport *transport, outbox_fn done);
/*
 * Ends what is under way, without a word to done. Says how many were not sent
 * in time: they come one by one.
 */
void outbox_fini(struct outbox *o);

/* So many were lost before they came here: they are told of. */
void outbox_lost(struct outbox *o, enum envelope_kind kind, enum client_report_reason reason,
		 uint64_t n);

/*
 * Where to; NULL: nowhere, envelopes end with SHIP_NOTHING. Lifts limits, but
 * for one on what is made that is known already, 0: none.
 */
void outbox_set_dsn(struct outbox *o, const struct dsn *dsn, uint64_t limited_until_ns);

/* Takes s. If there is no room the oldest that waits has to go. */
void outbox_add(struct outbox *o, struct sending *s);

/*
 * Asks the server whether it takes envelopes (MSG_PROBE) as soon as no request
 * is under way, also one that is not tried again yet; what is learned of the
 * server's limits and clock is kept. probed is called once, by outbox_step.
 */
void outbox_probe(struct outbox *o, outbox_probed_fn probed);

/* Does what can be done without waiting for the server. */
void outbox_step(struct outbox *o);

/* In so many ms outbox_step has something to do; -1: transport_wait says. */
int outbox_wait_ms(const struct outbox *o);

/*
 * From now on only so long, and no longer than was said before: what is left
 * then goes to the disk or is lost. The spool is left alone.
 */
void outbox_finish(struct outbox *o, uint64_t timeout_ns);

/*
 * Nothing comes any more: after what there is the last report goes out. If it
 * is all there is, it has so long.
 */
void outbox_end(struct outbox *o, uint64_t timeout_ns);

/* Nothing waits but in the spool. */
bool outbox_is_empty(const struct outbox *o);

#endif
