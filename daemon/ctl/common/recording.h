/*
 * A recording: a second profile of a process, which the running daemon makes for the
 * program that asks for it. What Sentry gets of the process does not change. Used by
 * `record`, `top` and `stack`.
 *
 * The daemon sends the chunks over a socket of the recording, in pieces, and a last message with
 * the reason of the end.
 */
#ifndef DAEMON_CTL_COMMON_RECORDING_H
#define DAEMON_CTL_COMMON_RECORDING_H

#include <signal.h>
#include <stdint.h>

#include "daemon/common/control_client.h"
#include "lib/base/buf.h"
#include "lib/base/util.h"
#include "lib/client/protocol.h"

/* A text about a recording with import_chunk.lacks_lines. 80 columns have room for the key. */
#define RECORDING_LACKS_LINES                                                          \
	"no source lines and inlined functions without symbols = lines in [profiler] " \
	"(--symbols lines)"

struct recording {
	/* The caller's connection to the daemon. It has to stay open until recording_close(). */
	struct control_client *client;
	int fd;		  /* the socket of the recording; may be polled */
	int32_t pid;	  /* the recorded process */
	uint32_t n_lost;  /* chunks that were made but did not arrive */
	struct buf chunk; /* what has arrived of the next chunk */
	/*
	 * The daemon's last text on why it takes no samples, or that it takes them again, after
	 * "the process is"; "": there was none. The caller clears has_new_note.
	 */
	char note[PROTOCOL_TEXT_SIZE];
	bool has_new_note;
	/* The daemon's text on what the configuration keeps out of the chunks; "": nothing. */
	char lacks[PROTOCOL_TEXT_SIZE];
	bool has_ended;
	/* Valid if has_ended: the reason, and the daemon's text on it, or "". */
	enum protocol_record_end end;
	char text[PROTOCOL_TEXT_SIZE];
};

/*
 * Starts a recording. type is PROTOCOL_RECORD (chunks of up to a minute) or
 * PROTOCOL_WATCH (a chunk each second). The caller names the process by its pid, and name is
 * NULL; or by the name of a configuration section that has one process, and pid is 0. Returns
 * 0, or -errno after a line on stderr. Call recording_close() after success only.
 */
must_check int recording_open(struct control_client *client, enum protocol_type type, int32_t pid,
			      const char *name, struct recording *ret);

/*
 * Waits for the next message until deadline_ns (clock_mono_ns(); UINT64_MAX: without a
 * limit). mask is the signal mask for ppoll(2); NULL leaves it. Returns 1 if there is a
 * message, 0 at the deadline, -EINTR after a signal, or another -errno.
 */
must_check int recording_wait(const struct recording *r, uint64_t deadline_ns,
			      const sigset_t *mask);

/*
 * A callback for the payload of a chunk, which is valid only during the call. Returns 0 or
 * -errno.
 */
typedef int recording_chunk(void *ctx, const char *payload, size_t size);

/*
 * Reads the messages that have come, without waiting, up to the end of a chunk; calls take if a
 * chunk is complete. Returns 1 if the recording goes on, with or without a chunk; 0 if it has
 * ended, also because the daemon has exited; or -errno: the error of take, after which the
 * recording continues, -ENOMEM or -EPROTO.
 */
must_check int recording_next(struct recording *r, recording_chunk *take, void *ctx);

/* Writes the note to stderr if it is new. Call it after recording_next(). */
void recording_log_note(struct recording *r);

/*
 * Asks the daemon to end all recordings of this connection. The last chunk follows, then
 * recording_next() returns 0. Returns 0, or -errno after a line on stderr.
 */
must_check int recording_finish(struct recording *r);

/* Returns the reason why the recording has ended, as text for the user, without a full stop. */
const char *recording_end_text(const struct recording *r);

/* Closes the socket of the recording, and frees what has arrived. */
void recording_close(struct recording *r);

#endif
