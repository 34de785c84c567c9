/*
 * Sends chunks to the broker: checks a finished profile, encodes it into a sealed memfd, and sends
 * the memfd. If that is not possible, it reports the chunk as lost, with the reason.
 *
 * A chunk is the profile of one target, a profiled process, for up to 60 s.
 * daemon/unwind/stream.c sends each chunk when it is closed. The chunk belongs to the target's
 * session or to one of the target's recordings (daemon/unwind/series.h).
 *
 * If a message cannot be sent, for example because the broker has ended, the functions exit this
 * process.
 */
#ifndef DAEMON_UNWIND_CHUNK_H
#define DAEMON_UNWIND_CHUNK_H

#include <stdint.h>

#include "daemon/msg/msg_unwind.h"
#include "proto/profile.h"

/* Reads the kernel's name and version (uname(2)). Call it once, before the sandbox forbids it. */
void chunk_init(void);

/* The program of a chunk: strings in UTF-8, owned by the caller, valid during the call. */
struct chunk_program {
	const char *name; /* file name of the executable, for Spotlight, Sentry's local viewer */
	const char *release;
	const char *environment;
	/* NULL: unknown. Not used without msg_session_open.with_command_line. */
	const char *command_line;
};

/*
 * Completes a profile of aggregate_close() with ids, platform, release, environment and SDK,
 * encodes it and sends it. If the profile breaks a rule of the server, is too large, or cannot be
 * encoded, reports the chunk as lost.
 * - recording: the number of the recording that the chunk belongs to; 0: the session.
 * - open: the target, profiler id and options of that session or recording (series.open in
 *   series.h).
 * - profile: stays the caller's, and afterwards points to strings of open and program.
 */
void chunk_send(const struct msg_session_open *open, uint32_t recording,
		const struct chunk_program *program, struct profile *profile);

/*
 * Reports a chunk of the target as lost. target: the broker's number. recording: as in
 * chunk_send(). reason: as in struct msg_chunk_lost; ignored for a recording, whose losses have no
 * reasons.
 */
void chunk_report_lost(uint32_t target, uint32_t recording, uint32_t reason);

/*
 * Reports that a recording of the target has ended; recording is not 0. stream_close() reports the
 * end of a session.
 */
void chunk_report_closed(uint32_t target, uint32_t recording);

#endif
