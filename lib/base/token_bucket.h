/*
 * A token bucket whose tokens are nanoseconds. It holds at most size_ns, and gains one nanosecond
 * each nanosecond. It limits processor time, or the rate of events. For example, a bucket of 30 s
 * from which each event takes 10 s allows 3 events at once, then one event every 10 s.
 *
 * The whole state of a bucket is full_ns, the time at which the bucket is full again; 0 is a full
 * bucket. To take more than the bucket holds is permitted and makes a debt. The caller chooses the
 * clock of now_ns and full_ns.
 */
#ifndef LIB_BASE_TOKEN_BUCKET_H
#define LIB_BASE_TOKEN_BUCKET_H

#include <stdbool.h>

#include "lib/base/util.h"

/* Returns whether the bucket holds at least ns nanoseconds at now_ns. */
static inline bool token_bucket_holds(uint64_t full_ns, uint64_t size_ns, uint64_t now_ns,
				      uint64_t ns)
{
	return max_u64(full_ns, now_ns) - now_ns + ns <= size_ns;
}

/* Takes ns nanoseconds out of the bucket at now_ns. */
static inline void token_bucket_take(uint64_t *full_ns, uint64_t now_ns, uint64_t ns)
{
	*full_ns = max_u64(*full_ns, now_ns) + ns;
}

#endif
