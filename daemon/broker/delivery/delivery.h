/*
 * Chunks in flight: from unwind, which hands each over as a sealed memfd, to a ship, to
 * files, and to Spotlight. The broker keeps a chunk until ship says that it is written,
 * sent or lost, and hands it over again to a ship that was started anew. Chunks that do not
 * arrive are counted, with the reason (enum discard).
 */
#ifndef DAEMON_BROKER_DELIVERY_DELIVERY_H
#define DAEMON_BROKER_DELIVERY_DELIVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/broker/children/child.h"
#include "daemon/broker/delivery/output.h"
#include "daemon/broker/state/state.h"
#include "daemon/msg/msg_ship.h"
#include "daemon/msg/msg_unwind.h"
#include "lib/base/ipc.h"

#define DISCARD_REASONS_MAX 32

/* No more than uint64_t. */
struct chunk_counts {
	uint64_t made;
	uint64_t written;
	uint64_t unwritten; /* there should have been a file, and is none */
	uint64_t sent;
	uint64_t spooled; /* to be sent later, perhaps by another daemon */
	uint64_t idle;	  /* not made: no thread ran, and only that was asked for */
	uint64_t discarded[DISCARD_REASONS_MAX]; /* by enum discard */
};

/* A process whose chunks are delivered: its figures. All zeros before the first chunk. */
struct chunk_source {
	struct chunk_counts chunks;
	uint64_t payload_bytes; /* of chunks that went on to ship */
	uint64_t waiting_bytes; /* delivery.c */
	size_t n_envelopes;	/* that point to this source: it must stay as long */
};

struct envelope; /* delivery.c */

/* Chunks for Spotlight. Those that it lost are counted here, and nowhere else. */
struct spotlight {
	size_t n_envelopes; /* of delivery.n_envelopes */
	struct chunk_counts chunks;
};

struct delivery {
	struct state *state;
	struct children *children;
	struct output output;	    /* its dir_fd is -1 where no files are written */
	struct envelope *envelopes; /* oldest first */
	size_t n_envelopes;	    /* of them, those that are in flight */
	struct spotlight spotlight;
	uint64_t last_seq;
	uint64_t finish_ns; /* when ships give up, by clock_mono_ns; 0: not yet */
	uint64_t files_written;
};

/* Chunks are written to files, too. */
static inline bool delivery_has_files(const struct delivery *d)
{
	return d->output.dir_fd >= 0;
}

/*
 * A chunk of source, whose server ship sends to, with the descriptors of its message, those
 * that are not there -1. They stay the caller's. Returns 0, or -EPROTO if it breaks a rule:
 * platform, for one, is what its configuration says.
 */
must_check int delivery_chunk(struct delivery *d, struct chunk_source *source, struct ship *ship,
			      const char *platform, const struct msg_chunk *m,
			      const int fds[IPC_FDS_MAX]);
/*
 * A chunk of source is lost before ship had it: enum discard. s is the ship of the run that
 * made it, whose server is told of the loss; the source may have another ship by now.
 */
void delivery_lost(struct chunk_source *source, struct ship *s, uint32_t reason);
/* Is it a payload of so many bytes, sealed against changes? */
bool delivery_is_payload(int fd, uint64_t size);

/* The ship has written the chunk's file, or could not. */
void delivery_written(struct delivery *d, struct ship *s, const struct msg_envelope_written *m);
/* The ship has sent, spooled or lost a chunk, and does not need it any more. */
void delivery_done(struct delivery *d, struct ship *s, const struct msg_envelope_done *m);

/* The ship was replaced: what is in flight is handed over again. */
void delivery_resend(struct delivery *d, struct ship *s);
/* Ships have so long until they give up what the server has not taken. */
void delivery_finish(struct delivery *d, uint64_t timeout_ns);
/* Gives up what is still in flight. */
void delivery_give_up(struct delivery *d);
/* The ship has ended for good: gives up what it had. */
void delivery_ship_gone(struct delivery *d, const struct ship *s);
/*
 * At the end of a turn, before instances_sweep: frees the envelopes that are
 * not in flight any more. The only place that takes one out of the list.
 */
void delivery_sweep(struct delivery *d);

#endif
