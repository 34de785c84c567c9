/*
 * How a finished profile leaves the unwind process: checked, encoded into a
 * sealed memfd, and sent to the broker; or counted there as lost.
 */
#ifndef DAEMON_UNWIND_CHUNK_H
#define DAEMON_UNWIND_CHUNK_H

#include <stdint.h>

#include "daemon/msg/msg_unwind.h"
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
 * sdk. Sends it, or says why it is lost. record: the recording that it is of;
 * 0: the session's. A broker that is gone ends the process.
 */
void chunk_send(const struct msg_session_open *open, uint32_t record,
		const struct chunk_program *program, struct profile *profile);

/*
 * A chunk of the target is lost: enum profile_fault, or chunk_lost. Of a
 * recording's no reason is told.
 */
void chunk_is_lost(uint32_t target, uint32_t record, uint32_t reason);

/* A recording of the target has ended. */
void chunk_record_is_closed(uint32_t target, uint32_t record);

#endif
