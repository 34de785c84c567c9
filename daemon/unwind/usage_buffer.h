/*
 * Usage buffer: the CPU and memory usage of a target (struct profile_measure)
 * that the broker measures once a second, until the chunk of that time is closed.
 *
 * Each session has one. Values are added as the broker sends them, and given to
 * the profile of a closed chunk by their time.
 */
#ifndef DAEMON_UNWIND_USAGE_BUFFER_H
#define DAEMON_UNWIND_USAGE_BUFFER_H

#include <stddef.h>

#include "proto/profile.h"

/* One a second, for a chunk of a minute that is closed late, and the next one. */
#define USAGE_BUFFER_MAX 128

struct usage_buffer {
	struct profile_measure v[USAGE_BUFFER_MAX]; /* by time */
	size_t n;
	size_t n_given; /* the first ones: in the profile of the last chunk */
};

/* Initialises an empty buffer. */
void usage_buffer_init(struct usage_buffer *b);

/* Adds a value. Drops it if the buffer is full or it is not later than the last. */
void usage_buffer_add(struct usage_buffer *b, const struct profile_measure *v);

/*
 * Puts the values within the time of the profile's samples into the profile. They
 * belong to the buffer and are valid until the next call. Older values are
 * dropped.
 */
void usage_buffer_give(struct usage_buffer *b, struct profile *ret);

#endif
