/*
 * Recordings: profiles of a process that a peer requests on the daemon's socket (sentry-profctl
 * record, top and stack). A recording does not change what Sentry and output files get of the
 * process.
 *
 * The unwind process makes the chunks of a recording (daemon/unwind/series.h). The broker copies
 * each chunk to the peer, on a socket that the recording has for itself (reader.h). A peer that
 * reads too slowly loses chunks; each message has the number of chunks lost so far. The recordings
 * of one user, also those that have ended, hold at most PROTOCOL_CHUNK_MAX bytes of memory: the
 * chunks that wait, and what the user's programs have not read from the sockets. All operators
 * count as one user (USER_QUOTA_OPERATORS).
 *
 * A recording belongs to an instance (targets/instance.h) and ends with the instance's process. The
 * recording of a user who is no operator also ends when the owner's key of the process changes
 * (targets/owners.h). A recording goes on when a user stops or starts the profiling of that
 * process, and when the unwind process dies. If an instance is not profiled for Sentry, it has a
 * run for its recordings alone (run.is_for_recordings).
 */
#ifndef DAEMON_BROKER_CONTROL_RECORDINGS_H
#define DAEMON_BROKER_CONTROL_RECORDINGS_H

#include "daemon/broker/control/control.h"

#include "daemon/process/peer.h"

struct recording;
struct run;
struct targets;

/* All recordings. Before the first call the caller sets targets, and zeroes the other members. */
struct recordings {
	struct targets *targets;
	struct recording *first; /* the oldest */
	uint32_t last_number;	 /* the number of the newest */
};

/*
 * Handles PROTOCOL_RECORD and PROTOCOL_WATCH: starts a recording with chunks of 60 s or of 1 s.
 * *ret is the answer, with the peer's end of the recording's socket, or with the reason of a
 * refusal:
 * - PROTOCOL_BAD_VERSION: peer->version is below PROTOCOL_RECORD_VERSION;
 * - PROTOCOL_BUSY: the process has MSG_RECORDINGS_MAX recordings; a limit of processes is reached
 *   (attach_request.h, targets/instance.h); or 8 ended recordings of the user, or 256 of all users
 *   but operators, have unread messages;
 * - PROTOCOL_NO_TARGET: m names a section that has no process, or several that the peer may record;
 * - PROTOCOL_FAILED, and the results of attach_request_for_recording().
 *
 * peer must stay valid until recordings_gone().
 */
void recordings_request(struct recordings *rs, const struct control_peer *peer,
			const struct protocol_request *m, struct control_answer *ret);

/* PROTOCOL_RECORD_END: ends the peer's recordings. The peer still gets their last chunks. */
void recordings_finish(struct recordings *rs, const struct control_peer *peer);
/* Ends the recordings of a peer that has disconnected. Chunks that wait for it are dropped. */
void recordings_gone(struct recordings *rs, const struct control_peer *peer);

/*
 * The next three functions handle messages of the unwind process of run about the recording with
 * this number. They ignore an unknown number, since the recording may have ended.
 *
 * recordings_chunk() handles a chunk of size bytes: copies the chunk to the peer or counts it as
 * lost. fd stays the caller's. Returns 0, or -EPROTO if fd is no sealed payload of that size.
 */
must_check int recordings_chunk(const struct recordings *rs, const struct run *run, uint32_t number,
				uint64_t size, int fd);
/* The unwind process has lost a chunk of the recording. */
void recordings_lost(const struct recordings *rs, const struct run *run, uint32_t number);
/* The unwind process has closed the recording; no more chunks come. */
void recordings_closed(const struct recordings *rs, const struct run *run, uint32_t number);

/*
 * To be called at every turn, after attach_check(), which opens sessions. Asks the unwind processes
 * to start recordings that have not begun. Ends a recording if its process has ended, was detached
 * by a user or cannot be profiled; if its peer has closed the socket, sent RECORD_END or lost its
 * right; or if the daemon stops.
 */
void recordings_check(struct recordings *rs);

/*
 * To be called at the end of a turn, before instances_sweep(): frees the recordings that have
 * ended. Keeps those whose peers have not read all messages. No other function removes a recording
 * from the list.
 */
void recordings_sweep(struct recordings *rs);

#endif
