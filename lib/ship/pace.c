#include "lib/ship/pace.h"

uint64_t pace_pause_ns(size_t n, uint64_t span_ns, uint64_t random)
{
	uint64_t each_ns, mean_ns;

	/* One alone says nothing, and is no load. */
	if (n < 2)
		return PACE_LEAST_NS;
	each_ns = min_u64(span_ns / (n - 1), PACE_EACH_MAX_NS);
	mean_ns = each_ns / PACE_TIMES;
	return max_u64(mean_ns / 2 + random % (mean_ns + 1), PACE_LEAST_NS);
}
