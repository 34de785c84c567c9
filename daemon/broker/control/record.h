/*
 * Recordings: profiles of a process for peers that request them on the daemon's socket
 * (sentry-profctl record and top). They do not change what Sentry and files get of the process.
 * unwind makes a recording's chunks (daemon/unwind/series.h). The broker passes each chunk to
 * the peer at once, on a socket of the recording, and keeps none. A peer that reads too slowly
 * loses chunks; each message has the number of chunks lost so far.
 *
 * A recording belongs to an instance and ends with the instance's process. It continues when the
 * profiler on that process is stopped or started, and when an unwind process dies. While an
 * instance is not profiled for Sentry, it has a run of the profiler for its recordings alone
 * (target.is_for_records).
 */
#ifndef DAEMON_BROKER_CONTROL_RECORD_H
#define DAEMON_BROKER_CONTROL_RECORD_H

#include "daemon/broker/control/control.h"

#include "daemon/process/peer.h"

struct recording;
struct target;
struct targets;

/* The current recordings. Zero-initialised, except for targets, there are none. */
struct records {
	struct targets *targets;
	struct recording *first; /* the oldest */
	uint32_t last;		 /* the number of the newest */
};

/*
 * Handles PROTOCOL_RECORD and PROTOCOL_WATCH. *ret is the answer, with the peer's end of the
 * recording's socket. peer must stay valid until records_gone().
 */
void record_ask(struct records *rs, const struct control_peer *peer,
		const struct protocol_request *m, struct control_answer *ret);

/* Ends the peer's recordings; their last chunks are still sent. */
void records_finish(struct records *rs, const struct control_peer *peer);
/* The peer has disconnected: ends its recordings, without their last chunks. */
void records_gone(struct records *rs, const struct control_peer *peer);

/*
 * The next three functions handle messages of unwind about recording number record of target t.
 * An unknown number is ignored, since the recording may have ended.
 *
 * unwind has sent a chunk of size bytes. fd stays the caller's. Returns 0, or -EPROTO if fd is
 * no sealed payload of that size.
 */
must_check int records_chunk(const struct records *rs, const struct target *t, uint32_t record,
			     uint64_t size, int fd);
/* unwind has lost a chunk of the recording. */
void records_lost(const struct records *rs, const struct target *t, uint32_t record);
/* unwind has closed the recording; no more chunks come. */
void records_closed(const struct records *rs, const struct target *t, uint32_t record);

/*
 * To be called at every turn, after targets_check(): requests recordings of unwind, and ends
 * those that are over.
 */
void records_check(struct records *rs);

/*
 * To be called at the end of a turn, before instances_sweep(): frees the recordings that are
 * over. No other function removes one from the list.
 */
void records_sweep(struct records *rs);

#endif
