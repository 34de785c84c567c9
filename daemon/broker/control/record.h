/*
 * Recordings: profiles of a process for peers who ask for them on the daemon's
 * socket (sentry-profctl record and top). What Sentry and files get of the
 * process does not change. unwind makes a recording's chunks
 * (daemon/unwind/series.h); the broker passes each chunk to the peer at once, on a
 * socket of the recording, and keeps none. A peer who reads too slowly loses
 * chunks, and each message says how many were lost so far.
 *
 * A recording belongs to an instance and ends with the instance's process. It
 * goes on when the profiler on that process is stopped or started, and when an
 * unwind process dies. While an instance is not profiled for Sentry, it has a
 * run of the profiler for its recordings alone (target.is_for_records).
 */
#ifndef DAEMON_BROKER_CONTROL_RECORD_H
#define DAEMON_BROKER_CONTROL_RECORD_H

#include "daemon/broker/control/control.h"

#include "daemon/process/peer.h"

struct recording;
struct target;
struct targets;

/* Those that go on. Zeros, but for targets, is none. */
struct records {
	struct targets *targets;
	struct recording *first; /* the oldest */
	uint32_t last;		 /* number of the newest */
};

/*
 * Serves PROTOCOL_RECORD and PROTOCOL_WATCH: *ret is the answer, with the
 * recording's socket.
 */
void record_ask(struct records *rs, const struct control_peer *peer,
		const struct protocol_request *m, struct control_answer *ret);

/* The peer wants no more of its recordings: their last chunks come. */
void records_finish(struct records *rs, const struct control_peer *peer);
/* The peer is gone, and its recordings are wanted by nobody. */
void records_gone(struct records *rs, const struct control_peer *peer);

/*
 * unwind has sent a chunk of a recording of its target t, has lost one, or has
 * closed the recording. A number that no recording has (any more) is no fault.
 * records_chunk returns 0, or -EPROTO: fd is no sealed payload of that size.
 */
must_check int records_chunk(const struct records *rs, const struct target *t, uint32_t record,
			     uint64_t size, int fd);
void records_lost(const struct records *rs, const struct target *t, uint32_t record);
void records_closed(const struct records *rs, const struct target *t, uint32_t record);

/*
 * At every turn, after targets_check: asks unwind for those that it can be
 * asked for, and ends those that are over.
 */
void records_check(struct records *rs);

/*
 * At the end of a turn, before instances_sweep: frees those that are over. The
 * only place that takes one out of the list.
 */
void records_sweep(struct records *rs);

#endif
