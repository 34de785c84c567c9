/*
 * Delivers chunks. unwind sends each chunk as a sealed memfd; the broker passes it to a ship,
 * and with Spotlight on a copy to Spotlight's ship. The ship sends the chunk to its server and
 * writes the file of --output. A chunk in flight is called an envelope here. The broker keeps it
 * until ship reports it as sent, spooled or lost, and sends it again to a ship that was
 * restarted. Chunks that do not arrive are counted, with the reason (enum discard).
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

/* Numbers of chunks. All members must be uint64_t: counts_add(). */
struct chunk_counts {
	uint64_t made;
	uint64_t written;
	uint64_t unwritten; /* the file could not be written */
	uint64_t sent;
	uint64_t spooled; /* put into the spool, to be sent later, perhaps by another daemon */
	uint64_t idle;	  /* not made, since no thread ran (mode = cpu) */
	uint64_t discarded[DISCARD_REASONS_MAX]; /* by enum discard */
};

/* The statistics of a process whose chunks are delivered. All zeros before the first chunk. */
struct chunk_source {
	struct chunk_counts chunks;
	uint64_t payload_bytes; /* of chunks that were passed to ship */
	uint64_t waiting_bytes; /* scratch value of delivery.c */
	/* Envelopes that refer to this source, which must not be freed before they are. */
	size_t n_envelopes;
};

struct envelope; /* delivery.c */

struct delivery {
	struct state *state;
	struct children *children;
	struct output output;	       /* dir_fd is -1 if no files are written */
	struct envelope *envelopes;    /* oldest first */
	size_t n_envelopes;	       /* those that are in flight */
	struct chunk_counts spotlight; /* copies for Spotlight; lost copies are counted only here */
	uint64_t last_seq;
	uint64_t finish_ns; /* when ships drop what they have, by clock_mono_ns(); 0: not set */
	uint64_t files_written;
};

/* Returns true if chunks are written to files, too. */
static inline bool delivery_has_files(const struct delivery *d)
{
	return d->output.dir_fd >= 0;
}

/*
 * Takes a chunk of source for delivery by ship. fds: the descriptors of its message, -1 for
 * those that are missing; they stay the caller's. platform: what the configuration says, which
 * the message has to repeat. Returns 0, or -EPROTO if the chunk breaks a rule. A chunk for which
 * memory or descriptors are missing is counted as lost.
 */
must_check int delivery_chunk(struct delivery *d, struct chunk_source *source, struct ship *ship,
			      const char *platform, const struct msg_chunk *m,
			      const int fds[IPC_FDS_MAX]);
/*
 * Counts a chunk of source that was lost before ship had it. reason: enum discard. s: the ship
 * of the run that made the chunk, which reports the loss to its server; the source may have
 * another ship by now.
 */
void delivery_lost(struct chunk_source *source, struct ship *s, uint32_t reason);
/*
 * Returns true if fd is a payload of this size in bytes, at most CHUNK_V2_SIZE_MAX, sealed
 * against changes.
 */
bool delivery_is_payload(int fd, uint64_t size);

/* Handles MSG_ENVELOPE_WRITTEN: the ship has written the chunk's file, or has failed to. */
void delivery_written(struct delivery *d, struct ship *s, const struct msg_envelope_written *m);
/*
 * Handles MSG_ENVELOPE_DONE: the ship has sent, spooled or lost the chunk, and does not need it
 * any more.
 */
void delivery_done(struct delivery *d, struct ship *s, const struct msg_envelope_done *m);

/* The ship was restarted: sends it the envelopes in flight again. */
void delivery_resend(struct delivery *d, struct ship *s);
/* Tells all ships to drop what the server has not taken within timeout_ns from now. */
void delivery_finish(struct delivery *d, uint64_t timeout_ns);
/* Counts all envelopes in flight as lost, and frees them. For the end of the broker. */
void delivery_give_up(struct delivery *d);
/* The ship has ended and is not restarted: counts its envelopes in flight as lost. */
void delivery_ship_gone(struct delivery *d, const struct ship *s);
/*
 * To be called at the end of a turn, before instances_sweep(): frees the envelopes that are not
 * in flight any more. Besides delivery_give_up(), no function removes one from the list.
 */
void delivery_sweep(struct delivery *d);

#endif
