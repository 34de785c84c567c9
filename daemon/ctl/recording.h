/*
 * A recording: the profile of a process, which the running daemon makes for
 * the program that asks for it; what Sentry gets of the process stays the same.
 * For sentry-profctl record, top and stack.
 */
#ifndef DAEMON_CTL_RECORDING_H
#define DAEMON_CTL_RECORDING_H

#include <signal.h>
#include <stdint.h>

#include "daemon/common/control_client.h"
#include "lib/base/util.h"
#include "lib/client/protocol.h"

struct recording {
	struct control_client *client; /* the caller's, open as long as this is */
	int fd;			       /* the daemon's socket of it; for poll(2) */
	int32_t pid;		       /* whose it is */
	uint32_t n_lost;	       /* chunks that were made and did not arrive */
	bool has_ended;		       /* and this is why: */
	enum protocol_record_end end;
	char text[PROTOCOL_TEXT_SIZE]; /* the daemon's words on it, or "" */
};

/*
 * type: PROTOCOL_RECORD, whose chunks are up to a minute long, or
 * PROTOCOL_WATCH, with one each second. pid, or name: that of a section with
 * one process. Returns 0, or -errno after a line on stderr.
 */
must_check int recording_open(struct control_client *a, enum protocol_type type, int32_t pid,
			      const char *name, struct recording *ret);

/*
 * Waits for the next message until deadline_ns of clock_mono_ns (UINT64_MAX:
 * without an end), with the mask of signals that ppoll(2) takes; NULL: as it
 * is. Returns 1, 0 if the time is over, or -EINTR after a signal.
 */
must_check int recording_wait(const struct recording *r, uint64_t deadline_ns,
			      const sigset_t *mask);

/* Gets a chunk's payload, which is gone afterwards. Returns 0 or -errno. */
typedef int recording_chunk(void *ctx, const char *payload, size_t size);

/*
 * Waits for the next chunk, and calls take with it. Returns 1; 0: the recording
 * has ended; or an error: that of take, or -EINTR after a signal.
 */
must_check int recording_next(struct recording *r, recording_chunk *take, void *ctx);

/*
 * Asks for the end of it, and of others of the same connection: the last chunk
 * comes, then recording_next returns 0. Returns 0, or -errno after a line.
 */
must_check int recording_finish(struct recording *r);

/*
 * Why it has ended, where that was not asked for: a line for a person, without
 * a full stop.
 */
const char *recording_end_text(const struct recording *r);

void recording_close(struct recording *r);

#endif
