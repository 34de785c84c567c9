/*
 * Usage buffer: keeps the CPU and memory usage of a target until the chunk of that time is closed.
 * The broker measures the usage once a second. A value is one measurement (struct
 * profile_measurement).
 *
 * Each session has one buffer. stream.c adds each value when the broker sends it. When a chunk is
 * closed, its profile gets the values of its time.
 */
#ifndef DAEMON_UNWIND_USAGE_BUFFER_H
#define DAEMON_UNWIND_USAGE_BUFFER_H

#include <stddef.h>

#include "proto/profile.h"

/* Two minutes: the values of a chunk of a minute that is closed late, and of the next chunk. */
#define USAGE_BUFFER_MAX 128

struct usage_buffer {
	struct profile_measurement v[USAGE_BUFFER_MAX]; /* oldest first */
	size_t n;
	/* The profile of the last usage_buffer_give() points to the first n_given values. */
	size_t n_given;
};

/* Initialises an empty buffer. */
void usage_buffer_init(struct usage_buffer *b);

/*
 * Adds a value. First drops the values that usage_buffer_give() has set in a profile, which become
 * invalid. Drops *v if the buffer is full, or if its time is not later than the last value's.
 */
void usage_buffer_add(struct usage_buffer *b, const struct profile_measurement *v);

/*
 * Sets p->measurements to the values from the time of the profile's first sample to that of the
 * last one; to no values if the profile has no samples. The samples must be sorted by time. The
 * values belong to the buffer, and are valid until the next call of a function of this module.
 * Drops the values before the first sample. Keeps those after the last sample for the next chunk.
 */
void usage_buffer_give(struct usage_buffer *b, struct profile *p);

#endif
