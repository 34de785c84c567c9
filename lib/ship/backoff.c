#include "lib/ship/backoff.h"

/* Counts a failure; the wait that follows it at the longest. */
static uint64_t count(struct backoff *b, uint64_t longest_ns)
{
	/* 2^16 s are above the maximum, and nowhere near an overflow. */
	if (b->failures < 16)
		longest_ns =
			min_u64(BACKOFF_FIRST_NS << b->failures, longest_ns);
	if (b->failures < UINT32_MAX)
		b->failures++;
	return longest_ns;
}

void backoff_failed(struct backoff *b, uint64_t now_ns, uint64_t random)
{
	b->until_ns = now_ns + random % (count(b, BACKOFF_MAX_NS) + 1);
}

void backoff_failed_alone(struct backoff *b, uint64_t now_ns,
			  uint64_t longest_ns)
{
	b->until_ns = now_ns + count(b, longest_ns);
}

void backoff_succeeded(struct backoff *b)
{
	*b = (struct backoff){0};
}
