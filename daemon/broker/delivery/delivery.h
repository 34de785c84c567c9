/*
 * Delivers chunks. A chunk is the profile of one process for up to a minute. An unwind process
 * sends each chunk to the broker as a sealed memfd. The broker passes the memfd to a ship. The ship
 * makes an envelope of the chunk, and sends it to the server of its DSN, writes it to a file of
 * --output, or both. If Spotlight is on, the broker passes a copy of the chunk to Spotlight's ship,
 * which makes a second envelope.
 *
 * struct envelope is the broker's entry for one such envelope. The envelope is in flight until the
 * ship reports it as sent, spooled or lost, or the broker drops it. If the process of a ship was
 * restarted, the broker sends it the ship's envelopes in flight again.
 *
 * The process of a ship has at most MSG_ENVELOPES_MAX envelopes; more wait in the broker. If there
 * are too many envelopes, or those that wait have too many bytes (delivery.c), the broker drops the
 * oldest waiting envelope of the profiled process with the most waiting bytes. A copy for Spotlight
 * is dropped at once if Spotlight's ship has too many. Chunks that do not arrive are counted, with
 * the reason (enum discard).
 *
 * Each profiled process has a chunk budget, because an unwind process that was taken over could
 * send chunks without end, and use up the quota of the DSN or fill the disk. The budget is a token
 * bucket (lib/base/token_bucket.h) that holds seconds. With chunk_seconds = 60:
 *
 *     a full bucket    CHUNK_BUDGET_HELD * 60 s + CHUNK_BUDGET_LAG_NS = 180 s
 *     a chunk takes    60 s / CHUNK_BUDGET_RATE = 2 s; or 1 s for each CHUNK_BUDGET_BYTES of its
 *                      memory (sealed_memory()), if that is more
 *     so at once       90 small chunks
 *
 * Chunks beyond the budget are lost (DISCARD_CHUNK_BUDGET). So are chunks whose memfd has holes,
 * because a hole can get memory later. An honest unwind process makes no holes, and stays below its
 * budget. Besides a chunk at the end of each chunk_seconds, it makes chunks at execs
 * (daemon/unwind/exec_budget.h), at the end of a run, when a library was replaced (seldom more
 * often than every 5 s), and when the open chunk has nearly 20 MB. If it was late for a minute or
 * two, it makes the chunks of that time at once.
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

/* The small chunks that are permitted in each chunk_seconds, in the long run. */
#define CHUNK_BUDGET_RATE 30u
/* A full bucket holds so many chunk_seconds, and besides the time by which unwind may be late. */
#define CHUNK_BUDGET_HELD   2u
#define CHUNK_BUDGET_LAG_NS (60 * NS_PER_SEC)
/*
 * Bytes of memory that the chunks of a process may have a second, in the long run: about as many as
 * result from a capture that uses its limit of half a processor (daemon/capture/realtime.h).
 */
#define CHUNK_BUDGET_BYTES (UINT64_C(4) << 20)

/* Numbers of chunks. All members must be uint64_t: counts_add(). */
struct chunk_counts {
	uint64_t made;	      /* by unwind, also those that the broker never got */
	uint64_t written;     /* to a file of --output */
	uint64_t not_written; /* to a file of --output: "unwritten" in --stats */
	uint64_t sent;	      /* to the server */
	uint64_t spooled;     /* put into the spool, to be sent later, perhaps by another daemon */
	uint64_t idle;	      /* not made, because no thread ran in that time (mode = cpu) */
	uint64_t discarded[DISCARD_REASONS_MAX]; /* by enum discard */
};

/* The statistics of one profiled process. All zeros before its first chunk. */
struct chunk_source {
	struct chunk_counts chunks;
	uint64_t payload_bytes; /* of chunks that were taken for delivery */
	uint64_t waiting_bytes; /* scratch value of delivery.c */
	uint64_t full_ns;	/* when the bucket of the chunk budget is full (token_bucket.h) */
	/* Envelopes that are not freed yet. The source must not be freed while this is not 0. */
	size_t n_envelopes;
};

struct envelope; /* delivery.c */

/* All zeros at first, except state and children (wiring.h) and output, which main.c opens. */
struct delivery {
	struct state *state;
	struct children *children;
	struct output output;	       /* dir_fd is -1 if no files are written */
	struct envelope *envelopes;    /* oldest first; ended ones stay until delivery_sweep() */
	size_t n_in_flight;	       /* the number of envelopes in flight, copies included */
	struct chunk_counts spotlight; /* the outcomes of all copies for Spotlight */
	uint64_t last_seq;	       /* the number of the newest envelope */
	uint64_t finish_ns;	/* deadline of delivery_finish(), by clock_mono_ns(); 0: not set */
	uint64_t files_written; /* files of --output that are complete */
};

/* Returns true if chunks are written to files, too. */
static inline bool delivery_has_files(const struct delivery *d)
{
	return d->output.dir_fd >= 0;
}

/*
 * Takes a chunk of source for delivery by ship. fds: the descriptors of the message m, -1 for those
 * that are missing; they stay the caller's. platform: the platform in the configuration of the
 * process, which m has to repeat. Returns:
 * - 0: the chunk is in flight, or is counted as lost because memory or descriptors are short;
 * - -EPROTO: m or a descriptor breaks a rule. Nothing is counted;
 * - -EDQUOT: the chunk budget of source is used up, or a payload has holes or too much memory. The
 *   chunk is counted as lost.
 */
must_check int delivery_chunk(struct delivery *d, struct chunk_source *source, struct ship *ship,
			      const char *platform, const struct msg_chunk *m,
			      const int fds[IPC_FDS_MAX]);
/*
 * Counts a chunk of source that was lost before a ship had it. The caller has counted the chunk in
 * source->chunks.made. reason: enum discard (daemon/msg/discard.h). s: the ship for which the chunk
 * was made, even if the process has another ship by now. s reports the loss to its server.
 */
void delivery_lost(struct chunk_source *source, struct ship *s, uint32_t reason);
/*
 * Returns true if fd is a payload: a memfd of this size in bytes, between 1 and CHUNK_V2_SIZE_MAX,
 * that is sealed against every change.
 */
bool delivery_is_payload(int fd, uint64_t size);

/*
 * Handles MSG_ENVELOPE_WRITTEN: the ship has written the file of an envelope, or writing has
 * failed. Kills the ship (child_fail()) if the ship has no such envelope with a file.
 */
void delivery_written(struct delivery *d, struct ship *s, const struct msg_envelope_written *m);
/*
 * Handles MSG_ENVELOPE_DONE: the ship has sent, spooled or lost the chunk of an envelope, and does
 * not need the chunk any more. Kills the ship (child_fail()) if m->result is invalid, or the ship
 * has no such envelope, or has not reported the envelope's file yet.
 */
void delivery_done(struct delivery *d, struct ship *s, const struct msg_envelope_done *m);

/*
 * Call it when the process of a ship was started: sends it the ship's envelopes in flight, the
 * losses that it has to report, and the deadline of delivery_finish(), if there is one.
 */
void delivery_resend(struct delivery *d, struct ship *s);
/*
 * Sets a deadline, timeout_ns from now, and sends it to all ships: at the deadline each ship drops
 * what its server has not taken, or puts it into the spool. Counts the envelopes of a ship that has
 * no process, and will have none (child_is_over), as lost.
 */
void delivery_finish(struct delivery *d, uint64_t timeout_ns);
/* Counts all envelopes in flight as lost, and frees all envelopes. For the end of the broker. */
void delivery_give_up(struct delivery *d);
/* Call it when a ship has ended and is not restarted: counts its envelopes in flight as lost. */
void delivery_ship_gone(struct delivery *d, const struct ship *s);
/*
 * To be called at the end of a turn: frees the envelopes that are no longer in flight. Call it
 * before instances_sweep(), which frees a source only when it has no envelopes. Besides
 * delivery_give_up(), no function removes an envelope from the list.
 */
void delivery_sweep(struct delivery *d);

#endif
