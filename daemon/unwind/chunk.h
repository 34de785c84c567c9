/*
 * Sends chunks to the broker: checks a finished profile, encodes it into a sealed
 * memfd, and sends that; or reports the chunk as lost, with the reason.
 *
 * A chunk is the profile of one target for up to 60 s. daemon/unwind/stream.c sends
 * each chunk when it is closed. The chunk belongs to the target's session or to one
 * of its recordings (daemon/unwind/series.h).
 *
 * If the broker has ended, every function that sends exits this process.
 */
#ifndef DAEMON_UNWIND_CHUNK_H
#define DAEMON_UNWIND_CHUNK_H

#include <stdint.h>

#include "daemon/msg/msg_unwind.h"
#include "proto/profile.h"

/* Reads the kernel's name and version (uname(2)). Call it once, before the sandbox forbids it. */
void chunk_init(void);

/* The program of a chunk, as UTF-8. */
struct chunk_program {
	const char *name; /* file name of the executable, for Spotlight, Sentry's local viewer */
	const char *release;
	const char *environment;
};

/*
 * Sets ids, platform, release, environment and SDK in the profile, which is from
 * aggregate_close(), encodes it and sends it, or reports the chunk as lost. recording:
 * the number of the recording that the chunk belongs to; 0: the session.
 */
void chunk_send(const struct msg_session_open *open, uint32_t recording,
		const struct chunk_program *program, struct profile *profile);

/*
 * Reports a chunk of the target as lost. recording is as in chunk_send(). reason is
 * that of struct msg_chunk_lost; of a recording it is ignored, because the broker counts
 * the lost chunks of a recording without reasons.
 */
void chunk_report_lost(uint32_t target, uint32_t recording, uint32_t reason);

/*
 * Reports that a recording of the target has ended; recording is not 0. (stream_close()
 * reports the end of a session.)
 */
void chunk_report_closed(uint32_t target, uint32_t recording);

#endif
