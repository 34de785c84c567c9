/*
 * A target's stream in the unwind process: records in, chunks out. It joins
 * the unwinder, the aggregate and the encoder, and asks the broker for files.
 */
#ifndef DAEMON_UNWIND_STREAM_H
#define DAEMON_UNWIND_STREAM_H

#include "daemon/msg/msg_capture.h"
#include "daemon/msg/msg_unwind.h"
#include "daemon/unwind/hints.h"
#include "lib/capture/sample.h"
#include "lib/unwind/unwind.h"

struct stream;

/* Sends a hint to capture. */
typedef void (*stream_hint_fn)(const struct msg_stack_hint *hint);

must_check int stream_new(const struct msg_session_open *open, struct unwind_cache *cache,
			  stream_hint_fn hint, struct stream **ret);
void stream_free(struct stream *s);

/* The broker's number of its target. */
uint32_t stream_target(const struct stream *s);

/*
 * The time from the one to the other counts as spent on this target. What
 * stream_new takes does anyway.
 */
void stream_work(struct stream *s, uint64_t now_ns);
void stream_rest(struct stream *s, uint64_t now_ns);

/*
 * Takes a record of this target. Returns 0, -EPROTO if it is malformed (by
 * capture's fault: the ring cannot be trusted any more), or -ENOMEM. Chunks go
 * to the broker as they become due.
 */
must_check int stream_record(struct stream *s, const struct record *record, size_t size);

/* Capture died: what the threads do is not known until it is back. */
must_check int stream_interrupted(struct stream *s);

/* What the target used; one too many for a chunk is left out. */
void stream_measure(struct stream *s, const struct msg_measure *m);

/*
 * A recording begins, or is to end. Return 0, -ENOMEM, or -EPROTO: there are
 * too many, or there is one of that number.
 */
must_check int stream_record_open(struct stream *s, const struct msg_record_open *m);
must_check int stream_record_close(struct stream *s, uint32_t record);

/*
 * Closes the last chunk, and those of recordings, and tells the broker that the
 * session is closed. The stream takes no more records; its table can still be
 * written.
 */
must_check int stream_close(struct stream *s);

/* The table of the hottest functions to fd, which stays the caller's. */
must_check int stream_write_table(struct stream *s, size_t max_rows, int fd);

#endif
