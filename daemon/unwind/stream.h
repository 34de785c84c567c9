/*
 * The stream of one target: records of capture go in, chunks go out to the broker.
 *
 * A stream belongs to a session (MSG_SESSION_OPEN). It joins the unwinder
 * (lib/unwind), the target's program (daemon/unwind/program.h), the series of
 * chunks of the session and of each recording (daemon/unwind/series.h), and the
 * encoder (daemon/unwind/chunk.h). A function may send chunks, and may wait for
 * files of the broker.
 *
 * Functions return 0 or -ENOMEM where the comment says nothing else. A broker that
 * has ended ends this process.
 */
#ifndef DAEMON_UNWIND_STREAM_H
#define DAEMON_UNWIND_STREAM_H

#include "daemon/msg/msg_capture.h"
#include "daemon/msg/msg_unwind.h"
#include "daemon/unwind/hints.h"
#include "lib/capture/sample.h"
#include "lib/unwind/unwind.h"

struct stream;

/* Sends a stack hint to capture. */
typedef void (*stream_hint_fn)(const struct msg_stack_hint *hint);

/* Creates a stream. Copies open; cache must outlive the stream. */
must_check int stream_new(const struct msg_session_open *open, struct unwind_cache *cache,
			  stream_hint_fn hint, struct stream **ret);
void stream_free(struct stream *s);

/* Returns the broker's number of the target. */
uint32_t stream_target(const struct stream *s);

/*
 * The time between the two calls is charged to this target, without the time in
 * which the process waits for the broker. stream_new() charges its own time.
 */
void stream_begin_work(struct stream *s, uint64_t now_ns);
void stream_end_work(struct stream *s, uint64_t now_ns);

/*
 * Takes a record of this target. Returns 0, -ENOMEM, or -EPROTO if the record is
 * malformed: then capture has a fault, and the ring cannot be trusted any more.
 * record may change while the function reads it, because capture can write to it.
 */
must_check int stream_record(struct stream *s, const struct record *record, size_t size);

/*
 * Call this when capture has ended. What the threads do is unknown until the next
 * records. These may be of another program, since an exec may not have been reported.
 */
must_check int stream_interrupted(struct stream *s);

/* Adds a value of the target's CPU and memory usage to the open chunk. */
void stream_add_usage(struct stream *s, const struct msg_measure *m);

/*
 * Begin and end a recording. stream_record_open() also returns -EPROTO if there are
 * MSG_RECORDS_MAX recordings, or one with that number.
 */
must_check int stream_record_open(struct stream *s, const struct msg_record_open *m);
must_check int stream_record_close(struct stream *s, uint32_t record);

/*
 * Closes the last chunks of the session and of its recordings, and tells the broker
 * that the session is closed. Afterwards the stream ignores records; its table can
 * still be written.
 */
must_check int stream_close(struct stream *s);

/* Writes the table of the hottest functions to fd, which stays the caller's. */
must_check int stream_write_table(struct stream *s, size_t max_rows, int fd);

#endif
