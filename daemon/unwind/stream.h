/*
 * The stream of one target: records of capture go in, chunks go out to the broker.
 *
 * Each session (MSG_SESSION_OPEN) has a stream. It joins the unwinder (lib/unwind), the
 * target's program (daemon/unwind/program.h), the series of chunks of the session and
 * of each recording (daemon/unwind/series.h), and the encoder (daemon/unwind/chunk.h).
 * Any function here may send chunks to the broker, and may wait for files from it. If
 * the broker has ended, the function exits this process.
 *
 * Functions return 0 or -ENOMEM unless their comment says otherwise.
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

/* How a stream sends messages to capture. A hint may be dropped. */
struct stream_capture {
	void (*hint)(const struct msg_stack_hint *m);
	/* May be dropped, too. */
	void (*want_registers)(const struct msg_want_registers *m);
	/* Returns false if the socket is full. */
	bool (*watch)(const struct msg_watch *m);
};

/*
 * Creates a stream. Copies open; cache, to_capture and table must outlive the stream. table: as in
 * struct aggregate_options.
 */
must_check int stream_new(const struct msg_session_open *open, struct unwind_cache *cache,
			  const struct stream_capture *to_capture, struct functions *table,
			  struct stream **ret);
void stream_free(struct stream *s);

/* Returns the broker's number of the target. */
uint32_t stream_target(const struct stream *s);

/*
 * Charge the time between the two calls to this target, without the time in which the
 * process waits for the broker. now_ns is CLOCK_MONOTONIC. stream_new() charges its own
 * time.
 */
void stream_begin_work(struct stream *s, uint64_t now_ns);
void stream_end_work(struct stream *s, uint64_t now_ns);

/*
 * Adds a ring record of this target, of size bytes. Returns 0, -ENOMEM, or -EPROTO if the
 * record is malformed: then capture has a fault, and the ring cannot be trusted any more.
 * record may change while the function reads it, because capture can write to it.
 */
must_check int stream_record(struct stream *s, const struct record *record, size_t size);

/*
 * Call this when capture has ended: ends all threads, because nothing is known of them until
 * the next records. When the next record comes, the stream checks whether the process has
 * executed another program meanwhile.
 */
must_check int stream_interrupted(struct stream *s);

/* Adds a value of the target's CPU and memory usage to the open chunk. */
void stream_add_usage(struct stream *s, const struct msg_usage_entry *m);

/*
 * Begin and end a recording. stream_recording_open() also returns -EPROTO if the number is 0,
 * an open recording has that number, or MSG_RECORDINGS_MAX recordings are open.
 * stream_recording_close() sends the last chunk, and reports that the recording is closed; it
 * does nothing if no recording has that number.
 */
must_check int stream_recording_open(struct stream *s, const struct msg_recording_open *m);
must_check int stream_recording_close(struct stream *s, uint32_t recording);

/*
 * Sends the last chunks of the session and of its recordings, and reports to the broker that
 * the session is closed. Afterwards the stream ignores records.
 */
must_check int stream_close(struct stream *s);

/* aggregate_update_table() for the session. */
must_check int stream_update_table(struct stream *s);

#endif
