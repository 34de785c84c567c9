/* Adds up structs of counters, such as struct chunk_counts (daemon/broker/delivery/delivery.h). */
#ifndef DAEMON_BROKER_STATE_COUNTS_H
#define DAEMON_BROKER_STATE_COUNTS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Adds each member of *more to the same member of *sum. Both are structs of one type, which has
 * uint64_t members only. bytes: the size of the struct.
 */
static inline void counts_add(void *sum, const void *more, size_t bytes)
{
	const uint64_t *from = more;
	uint64_t *to = sum;

	for (size_t i = 0; i < bytes / sizeof(*to); i++)
		to[i] += from[i];
}

#endif
