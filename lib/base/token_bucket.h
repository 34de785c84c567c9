/*
 * A token bucket of time: a limit on how much processor time something may use. It holds at most
 * size_ns and gains one nanosecond each nanosecond.
 *
 * Its whole state is full_ns, the time at which it is full again; 0 is a full bucket. Taking more
 * than it holds is permitted and makes a debt.
 */
#ifndef LIB_BASE_TOKEN_BUCKET_H
#define LIB_BASE_TOKEN_BUCKET_H

#include <stdbool.h>

#include "lib/base/util.h"

/* Returns whether the bucket holds ns at now_ns. */
static inline bool token_bucket_holds(uint64_t full_ns, uint64_t size_ns, uint64_t now_ns,
				      uint64_t ns)
{
	return max_u64(full_ns, now_ns) - now_ns + ns <= size_ns;
}

/* Takes ns out of the bucket. */
static inline void token_bucket_take(uint64_t *full_ns, uint64_t now_ns, uint64_t ns)
{
	*full_ns = max_u64(*full_ns, now_ns) + ns;
}

#endif
