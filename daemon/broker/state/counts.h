/* Adds up structs of counters. */
#ifndef DAEMON_BROKER_STATE_COUNTS_H
#define DAEMON_BROKER_STATE_COUNTS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Adds the members of *more to those of *sum. Both are structs of this size in bytes that have
 * uint64_t members only.
 */
static inline void counts_add(void *sum, const void *more, size_t bytes)
{
	const uint64_t *from = more;
	uint64_t *to = sum;

	for (size_t i = 0; i < bytes / sizeof(*to); i++)
		to[i] += from[i];
}

#endif
