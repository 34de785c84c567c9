#include "lib/ship/retry.h"

/* Counts a failure and returns the longest wait that may follow it. */
static uint64_t count_failure(struct retry *r, uint64_t longest_ns)
{
	if (r->failures < UINT32_MAX)
		r->failures++;
	return backoff_ns(r->failures, RETRY_FIRST_NS, longest_ns);
}

void retry_failed(struct retry *r, uint64_t now_ns, uint64_t longest_ns, uint64_t random)
{
	r->until_ns = now_ns + random % (count_failure(r, longest_ns) + 1);
}

void retry_failed_without_jitter(struct retry *r, uint64_t now_ns, uint64_t longest_ns)
{
	r->until_ns = now_ns + count_failure(r, longest_ns);
}

void retry_succeeded(struct retry *r)
{
	*r = (struct retry){0};
}

uint64_t retry_pause_ns(size_t n, uint64_t span_ns, uint64_t random)
{
	uint64_t interval_ns, mean_ns;

	/* There is no interval to measure, and a single envelope is no load. */
	if (n < 2)
		return RETRY_PAUSE_MIN_NS;
	interval_ns = min_u64(span_ns / (n - 1), RETRY_INTERVAL_MAX_NS);
	mean_ns = interval_ns / RETRY_DRAIN_TIMES;
	return max_u64(mean_ns / 2 + random % (mean_ns + 1), RETRY_PAUSE_MIN_NS);
}
