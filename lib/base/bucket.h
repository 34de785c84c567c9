/*
 * Token bucket, of time: it holds size_ns, and a nanosecond flows in each
 * nanosecond until it is full. All that is kept of it is when it is full again:
 * 0 is a full bucket. More may be taken than it holds, which is owed then.
 */
#ifndef LIB_BASE_BUCKET_H
#define LIB_BASE_BUCKET_H

#include <stdbool.h>

#include "lib/base/util.h"

/* Whether the bucket holds ns at now_ns. */
static inline bool bucket_holds(uint64_t full_ns, uint64_t size_ns, uint64_t now_ns, uint64_t ns)
{
	return max_u64(full_ns, now_ns) - now_ns + ns <= size_ns;
}

static inline void bucket_take(uint64_t *full_ns, uint64_t now_ns, uint64_t ns)
{
	*full_ns = max_u64(*full_ns, now_ns) + ns;
}

#endif
