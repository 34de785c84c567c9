/*
 * Writes the "profile" object, which both sample formats have: frames, stacks, samples and
 * thread_metadata. For files of proto/ only.
 *
 * Source: Sentry's profiles specification 2.5.0, "Profile Data".
 */
#ifndef PROTO_PROFILE_JSON_H
#define PROTO_PROFILE_JSON_H

#include <stdbool.h>

#include "proto/json_out.h"
#include "proto/profile.h"

/* How the times of samples are written. */
enum profile_json_clock {
	PROFILE_JSON_UNIX,    /* V2: "timestamp", in seconds */
	PROFILE_JSON_ELAPSED, /* V1: "elapsed_since_start_ns", a string */
};

/* The longest elapsed time that the server accepts in V1. Later samples are written with it. */
#define PROFILE_JSON_ELAPSED_MAX_US UINT64_C(30000000)

/*
 * Writes "profile":{...} without frames, nodes and threads that no sample uses. for_file: also
 * writes the states of samples and the lines of frames, which the server would drop, and the
 * samples with is_for_files. The profile must have passed profile_check(). Returns 0 or -ENOMEM; an
 * error of writing is stored in o, and json_out_finish() returns it.
 */
int profile_json_write(const struct profile *p, enum profile_json_clock clock, bool for_file,
		       struct json_out *o) __attribute__((warn_unused_result));

/* Returns the JSON member for a state, with a comma before it, such as PROFILE_STATE_RUNNING. */
const char *profile_json_state(enum profile_state state);

/* Writes the thread_id of a thread in the payload, as digits without quotes. */
void profile_json_thread_id(const struct profile_thread *thread, struct json_out *o);

#endif
