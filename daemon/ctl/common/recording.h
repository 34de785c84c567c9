/*
 * Starts and receives a recording: a second profile of a process, which the running daemon makes
 * for the program that asks for it. What Sentry gets of the process does not change. Used by
 * `record`, `top` and `stack`.
 *
 * Each recording has a socket of its own. Over this socket the daemon sends the chunks (parts of
 * the profile, one for each second or minute), in several messages each. The last message has the
 * reason why the recording ended.
 */
#ifndef DAEMON_CTL_COMMON_RECORDING_H
#define DAEMON_CTL_COMMON_RECORDING_H

#include <signal.h>
#include <stdint.h>

#include "daemon/common/control_client.h"
#include "lib/base/buf.h"
#include "lib/base/util.h"
#include "lib/client/protocol.h"

/* A text for the user if import_chunk.lacks_lines is set. 80 columns show the configuration key. */
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
	 * The daemon's last note: why it takes no samples, or that it takes samples again. The text
	 * continues "the process is"; "": no note yet. A caller that shows the note without
	 * recording_log_note() clears has_new_note.
	 */
	char note[PROTOCOL_TEXT_SIZE];
	bool has_new_note;
	/* The daemon's text on what the configuration keeps out of the chunks; "": nothing. */
	char lacks[PROTOCOL_TEXT_SIZE];
	bool has_ended;
	/* Valid if has_ended: the reason of the end, and the daemon's text about it ("": none). */
	enum protocol_record_end end;
	char text[PROTOCOL_TEXT_SIZE];
};

/*
 * Starts a recording. type is PROTOCOL_RECORD (chunks of up to a minute) or
 * PROTOCOL_WATCH (a chunk each second). The caller names the process by its pid, and name is
 * NULL; or by the name of a configuration section that matches one process, and pid is 0. Returns
 * 0, or -errno after a line on stderr. The caller calls recording_close() after success only.
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
 * Reads the messages that have arrived, without waiting, until a chunk is complete, and then calls
 * take with this chunk. Returns
 * - 1 if the recording goes on, with or without a chunk;
 * - 0 if the recording has ended, or the daemon has exited;
 * - the error of take: the recording goes on, without this chunk;
 * - another -errno, such as -EPROTO or -ENOMEM: only recording_close() may be called.
 */
must_check int recording_next(struct recording *r, recording_chunk *take, void *ctx);

/* Writes r->note to stderr if has_new_note is set, and clears has_new_note. */
void recording_log_note(struct recording *r);

/*
 * Asks the daemon to end all recordings of this connection. The caller goes on with
 * recording_next(), which passes the last chunk and then returns 0. Returns 0, or -errno after a
 * line on stderr.
 */
must_check int recording_finish(struct recording *r);

/* Returns why the recording has ended, for the user, without a full stop; static or part of *r. */
const char *recording_end_text(const struct recording *r);

/* Closes the socket of the recording and frees the memory. */
void recording_close(struct recording *r);

#endif
