/*
 * Starts and receives a recording: a profile of a process that the daemon makes for sentry-profctl.
 * The recording does not change the profile of the process that the daemon sends to Sentry. Used by
 * `record`, `top` and `stack`.
 *
 * A chunk is the part of the profile for one second, or for up to a minute (recording_open()). Each
 * recording has a socket of its own, over which the daemon sends the chunks, each in one or several
 * messages. The last message has the reason why the recording ended.
 */
#ifndef DAEMON_CTL_COMMON_RECORDING_H
#define DAEMON_CTL_COMMON_RECORDING_H

#include <signal.h>
#include <stdint.h>

#include "daemon/common/control_client.h"
#include "lib/base/buf.h"
#include "lib/base/util.h"
#include "lib/client/protocol.h"

/*
 * A text for the user, to be shown if a chunk has import_chunk.lacks_lines: the configuration of
 * the daemon says that source lines are not looked up. The key of the configuration comes early, so
 * that a terminal of 80 columns shows it.
 */
#define RECORDING_LACKS_LINES                                                          \
	"no source lines and inlined functions without symbols = lines in [profiler] " \
	"(--symbols lines)"

struct recording {
	/* The caller's connection to the daemon, which stays open until recording_close(). */
	struct control_client *client;
	int fd;		  /* the socket of the recording; may be polled */
	int32_t pid;	  /* the recorded process */
	uint32_t n_lost;  /* chunks that were made but did not arrive */
	struct buf chunk; /* the part of the next chunk that has arrived */
	/*
	 * The daemon's last note: why it takes no samples, or that it takes samples again. It is
	 * the end of a sentence that begins with "the process is". "": no note yet.
	 */
	char note[PROTOCOL_TEXT_SIZE];
	/* A note has arrived. recording_log_note(), or a caller that shows it, clears this. */
	bool has_new_note;
	/*
	 * The daemon's text on which samples the configuration keeps out of the chunks, such as
	 * those of waiting threads; "": none. Set by recording_open().
	 */
	char lacks[PROTOCOL_TEXT_SIZE];
	bool has_ended;
	/* Valid if has_ended: the reason of the end, and the daemon's text about it ("": none). */
	enum protocol_record_end end;
	char text[PROTOCOL_TEXT_SIZE];
};

/*
 * Starts a recording. type is PROTOCOL_RECORD (chunks of up to a minute) or
 * PROTOCOL_WATCH (a chunk each second). The caller names the process in one of two ways:
 * - pid is its pid, and name is NULL;
 * - pid is 0, and name is that of a configuration section that matches exactly one process.
 * Returns 0, or -errno after a line on stderr, such as -EINVAL if the daemon refuses. The caller
 * calls recording_close() after success only.
 */
must_check int recording_open(struct control_client *client, enum protocol_type type, int32_t pid,
			      const char *name, struct recording *ret);

/*
 * Waits until recording_next() has something to read, or until deadline_ns (clock_mono_ns();
 * UINT64_MAX: no deadline). mask is the signal mask during the wait, as in ppoll(2); NULL: the mask
 * stays as it is. Returns 1 if there is something to read, 0 at the deadline, -EINTR after a
 * signal, or another -errno.
 */
must_check int recording_wait(const struct recording *r, uint64_t deadline_ns,
			      const sigset_t *mask);

/*
 * A callback for the payload of a chunk, which is valid only during the call. Returns 0 or
 * -errno.
 */
typedef int recording_chunk(void *ctx, const char *payload, size_t size);

/*
 * Reads the messages that have arrived; does not wait for more. Stops reading when a chunk is
 * complete, and passes this chunk to the callback take. Returns
 * - 1 if the recording goes on, whether a chunk was complete or not;
 * - 0 if the recording has ended, or the daemon has exited (PROTOCOL_RECORD_SHUTDOWN): then
 *   r->has_ended is set;
 * - the error of take, or an error of the socket or of a message, such as -EPROTO or -ENOMEM: the
 *   caller gives up and calls recording_close().
 */
must_check int recording_next(struct recording *r, recording_chunk *take, void *ctx);

/* If has_new_note is set, writes "process PID is NOTE" to stderr and clears has_new_note. */
void recording_log_note(struct recording *r);

/*
 * Asks the daemon to end r, and all other recordings of the connection r->client. The caller then
 * calls recording_next() until it returns 0, and gets the last chunk in this way. Returns 0, or
 * -errno after a line on stderr.
 */
must_check int recording_finish(struct recording *r);

/*
 * Returns why the recording has ended, as a text for the user without a full stop. Call it if
 * r->has_ended is set. The text is static or part of *r.
 */
const char *recording_end_text(const struct recording *r);

/*
 * Closes the socket of the recording and frees the memory. A recording that goes on ends then at
 * the daemon, too.
 */
void recording_close(struct recording *r);

#endif
