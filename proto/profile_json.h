/*
 * The profile object that both sample formats have: frames, stacks, samples and
 * thread_metadata. Inside proto/.
 * Source: Sentry's profiles specification 2.5.0, "Profile Data".
 */
#ifndef PROTO_PROFILE_JSON_H
#define PROTO_PROFILE_JSON_H

#include <stdbool.h>

#include "proto/json_out.h"
#include "proto/profile.h"

enum profile_json_clock {
	PROFILE_JSON_UNIX,    /* V2: timestamp, seconds */
	PROFILE_JSON_ELAPSED, /* V1: elapsed_since_start_ns, text */
};

/* The server takes no longer one of V1; what comes later is said to be then. */
#define PROFILE_JSON_ELAPSED_MAX_US UINT64_C(30000000)

/*
 * Writes "profile":{...}: only the frames, nodes and threads that samples use.
 * with_states: samples that wait have PROFILE_STATE_WAITING; without any of
 * these the first sample has PROFILE_STATE_RUNNING. The server would drop both.
 * The profile must have passed profile_check. Returns 0 or -ENOMEM; an error
 * of o sticks to that.
 */
int profile_json_write(const struct profile *p, enum profile_json_clock clock, bool with_states,
		       struct json_out *o) __attribute__((warn_unused_result));

/* What the payload calls a thread, as digits without quotes. */
void profile_json_thread_id(const struct profile_thread *thread, struct json_out *o);

#endif
