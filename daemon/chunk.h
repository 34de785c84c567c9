/*
 * How a finished profile leaves the unwind process: checked, encoded into a
 * sealed memfd, and sent to the broker; or counted there as lost.
 */
#ifndef DAEMON_CHUNK_H
#define DAEMON_CHUNK_H

#include <stdint.h>

#include "daemon/msg.h"
#include "proto/profile.h"

/* Looks at what is not to be seen from within the sandbox. Once, before. */
void chunk_init(void);

/* What a chunk says of the program that it is of. All are UTF-8. */
struct chunk_program {
	const char *name; /* of its file, for Spotlight */
	const char *release;
	const char *environment;
};

/*
 * Fills in the rest of the profile (aggregate_close): ids, platform, release,
 * sdk. Sends it, or says why it is lost. A broker that is gone ends the
 * process.
 */
void chunk_send(const struct msg_session_open *open,
		const struct chunk_program *program, struct profile *profile);

/* A chunk of the target is lost: enum profile_fault, or chunk_lost. */
void chunk_is_lost(uint32_t target, uint32_t reason);

#endif
