/*
 * Usage buffer: keeps the CPU and memory usage of a target (struct profile_measurement), which
 * the broker measures once a second, until the chunk of that time is closed.
 *
 * Each session has one. Values are added as the broker sends them. When a chunk is closed,
 * its profile gets the values of its time.
 */
#ifndef DAEMON_UNWIND_USAGE_BUFFER_H
#define DAEMON_UNWIND_USAGE_BUFFER_H

#include <stddef.h>

#include "proto/profile.h"

/* Values of two minutes: a chunk of a minute that is closed late, and the next chunk. */
#define USAGE_BUFFER_MAX 128

struct usage_buffer {
	struct profile_measurement v[USAGE_BUFFER_MAX]; /* by time */
	size_t n;
	/* The first n_given values are in the profile that usage_buffer_give() got last. */
	size_t n_given;
};

/* Initialises an empty buffer. */
void usage_buffer_init(struct usage_buffer *b);

/*
 * Adds a value. Drops it if the buffer is full, or if its time is not after that of the last
 * value. The values in the last profile become invalid.
 */
void usage_buffer_add(struct usage_buffer *b, const struct profile_measurement *v);

/*
 * Sets the profile's measurements to the values from the time of its first sample to that of its
 * last; none if it has no samples. The values belong to the buffer, and are valid until the next
 * call of a function of this module. Drops older values.
 */
void usage_buffer_give(struct usage_buffer *b, struct profile *p);

#endif
