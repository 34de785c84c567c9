#include "lib/ship/backoff.h"

/* Counts a failure; the wait that follows it at the longest. */
static uint64_t count(struct backoff *b, uint64_t longest_ns)
{
	if (b->failures < UINT32_MAX)
		b->failures++;
	return backoff_ns(b->failures, BACKOFF_FIRST_NS, longest_ns);
}

void backoff_failed(struct backoff *b, uint64_t now_ns, uint64_t random)
{
	b->until_ns = now_ns + random % (count(b, BACKOFF_MAX_NS) + 1);
}

void backoff_failed_alone(struct backoff *b, uint64_t now_ns, uint64_t longest_ns)
{
	b->until_ns = now_ns + count(b, longest_ns);
}

void backoff_succeeded(struct backoff *b)
{
	*b = (struct backoff){0};
}
