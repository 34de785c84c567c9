/*
 * Sends chunks to the broker: checks a finished profile, encodes it into a sealed
 * memfd, and sends that; or reports the chunk as lost, with the reason.
 *
 * daemon/unwind/stream.c uses it for each chunk that it closes. A broker that has
 * ended ends this process.
 */
#ifndef DAEMON_UNWIND_CHUNK_H
#define DAEMON_UNWIND_CHUNK_H

#include <stdint.h>

#include "daemon/msg/msg_unwind.h"
#include "proto/profile.h"

/* Reads the kernel's name. Called once, before the sandbox hides it. */
void chunk_init(void);

/* The program of a chunk, as UTF-8. */
struct chunk_program {
	const char *name; /* file name of the executable, for Spotlight */
	const char *release;
	const char *environment;
};

/*
 * Sets ids, platform, release, environment and SDK in the profile
 * (aggregate_close()), encodes it and sends it, or reports the chunk as lost.
 * record: the recording that the chunk belongs to; 0: the session.
 */
void chunk_send(const struct msg_session_open *open, uint32_t record,
		const struct chunk_program *program, struct profile *profile);

/*
 * Reports a chunk of the target as lost, with a reason of struct msg_chunk_lost.
 * Recordings count their lost chunks without a reason.
 */
void chunk_report_lost(uint32_t target, uint32_t record, uint32_t reason);

/* Reports that a recording of the target has ended. */
void chunk_report_closed(uint32_t target, uint32_t record);

#endif
