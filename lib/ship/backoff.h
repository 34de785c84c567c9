/*
 * When to try again a server that does not answer: after longer and longer, and
 * by chance ("full jitter"), so that hosts which lost the server at the same
 * moment do not come back at the same moment.
 *
 * The n-th failure in a row is followed by a wait of anything between nothing
 * and BACKOFF_FIRST_NS * 2^(n-1), BACKOFF_MAX_NS at most.
 */
#ifndef LIB_SHIP_BACKOFF_H
#define LIB_SHIP_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

#define BACKOFF_FIRST_NS (1 * NS_PER_SEC)
#define BACKOFF_MAX_NS	 (300 * NS_PER_SEC)

/* All 0: nothing has failed. */
struct backoff {
	uint32_t failures; /* in a row */
	uint64_t until_ns; /* not before; of the caller's clock */
};

/* random: 64 bits that nobody can tell beforehand. */
void backoff_failed(struct backoff *b, uint64_t now_ns, uint64_t random);
/*
 * The same without chance, where nobody else waits for the server: the n-th
 * failure is followed by a wait of BACKOFF_FIRST_NS * 2^(n-1), longest_ns at
 * most.
 */
void backoff_failed_alone(struct backoff *b, uint64_t now_ns, uint64_t longest_ns);
void backoff_succeeded(struct backoff *b);

static inline bool backoff_holds(const struct backoff *b, uint64_t now_ns)
{
	return b->failures > 0 && now_ns < b->until_ns;
}

#endif
