#include "lib/ship/backoff.h"

void backoff_failed(struct backoff *b, uint64_t now_ns, uint64_t random)
{
	uint64_t longest = BACKOFF_MAX_NS;

	/* 2^16 s are above the maximum, and nowhere near an overflow. */
	if (b->failures < 16)
		longest = min_u64(BACKOFF_FIRST_NS << b->failures, longest);
	if (b->failures < UINT32_MAX)
		b->failures++;
	b->until_ns = now_ns + random % (longest + 1);
}

void backoff_succeeded(struct backoff *b)
{
	*b = (struct backoff){0};
}
