/*
 * The stream of one target: turns records of capture into chunks for the broker. main.c creates a
 * stream for each session (MSG_SESSION_OPEN), and passes it each record of its target.
 *
 * The stream joins the unwinder (lib/unwind), the target's program (daemon/unwind/program.h), the
 * series of chunks of the session and of each recording (daemon/unwind/series.h), and the encoder
 * (daemon/unwind/chunk.h).
 *
 * Any function that returns int may send messages to the broker, and may wait for files from it. If
 * the broker has ended, the function exits this process. These functions return 0 or -ENOMEM unless
 * their comment says otherwise.
 */
#ifndef DAEMON_UNWIND_STREAM_H
#define DAEMON_UNWIND_STREAM_H

#include "daemon/msg/msg_capture.h"
#include "daemon/msg/msg_unwind.h"
#include "daemon/unwind/hints.h"
#include "lib/capture/sample.h"
#include "lib/unwind/unwind.h"

struct functions;
struct stream;

/* How a stream sends messages to capture. If the socket is full, the first two drop the message. */
struct stream_capture {
	void (*hint)(const struct msg_stack_hint *m);
	void (*want_registers)(const struct msg_want_registers *m);
	/* Returns false if the socket is full: the stream sends *m again later. */
	bool (*watch)(const struct msg_watch *m);
};

/*
 * Creates a stream. Copies open; cache, to_capture and table must outlive the stream. table: sums
 * the time by function over the sessions of all streams (lib/aggregate/functions.h); NULL: none.
 * Waits for the identity of the target's program. Returns 0; -ENOMEM; or -EINVAL if open->chunk_us
 * is 0 or above 60 s.
 */
must_check int stream_new(const struct msg_session_open *open, struct unwind_cache *cache,
			  const struct stream_capture *to_capture, struct functions *table,
			  struct stream **ret);
/* Frees the stream without sending its open chunks. s may be NULL. */
void stream_free(struct stream *s);

/* Returns the broker's number of the target. */
uint32_t stream_target(const struct stream *s);

/*
 * Charge the time between the two calls to this target, without the time in which unwind waits for
 * the broker. now_ns is CLOCK_MONOTONIC. Several calls of the functions below can be between the
 * two. stream_new() charges its own time.
 */
void stream_begin_work(struct stream *s, uint64_t now_ns);
void stream_end_work(struct stream *s, uint64_t now_ns);

/*
 * Handles a record of this target. The record has size bytes and may be in the ring, where capture
 * can change it during the call. RECORD_END has the effect of stream_close(); records after that
 * are ignored. Returns 0, -ENOMEM, or -EPROTO if the record is malformed: then capture has a fault,
 * and the ring cannot be trusted any more.
 */
must_check int stream_record(struct stream *s, const struct record *record, size_t size);

/*
 * Records that the capture process has ended. All threads of the target end in the stream, because
 * nothing is known of them until a new capture sends records. At the next record the stream checks
 * whether the target has executed another program meanwhile.
 */
must_check int stream_capture_ended(struct stream *s);

/*
 * Adds a measurement of the target's CPU and memory, for the session's chunk of that time
 * (usage_buffer.h).
 */
void stream_add_usage(struct stream *s, const struct msg_usage_entry *m);

/*
 * Begins a recording. After stream_close() it only reports to the broker that the recording is
 * closed. Returns 0; -ENOMEM; -EINVAL if m->chunk_us is 0 or above 60 s; or -EPROTO if m->recording
 * is 0 or the number of an open recording, or if MSG_RECORDINGS_MAX recordings are open.
 */
must_check int stream_recording_open(struct stream *s, const struct msg_recording_open *m);
/*
 * Sends the last chunk of the recording with this number, and reports the recording as closed to
 * the broker. Does nothing if no open recording has this number.
 */
must_check int stream_recording_close(struct stream *s, uint32_t recording);

/*
 * Sends the last chunks of the recordings and of the session, and reports each of them as closed to
 * the broker. After an error the remaining recordings are neither sent nor reported; the session is
 * reported in any case. Afterwards the stream ignores records and usage. A second call does
 * nothing.
 */
must_check int stream_close(struct stream *s);

/*
 * Adds the times of the session's open chunk, up to the settled tick (lib/aggregate/aggregate.h),
 * to the table of stream_new(). Those of a closed chunk are in the table already. Call it for each
 * stream before the table is written for the user.
 */
must_check int stream_update_table(struct stream *s);

#endif
