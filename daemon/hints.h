/*
 * What capture is told of how deep threads' stacks are: it copies no more of
 * them than walks have needed. A thread whose stack grows gets another hint.
 */
#ifndef DAEMON_HINTS_H
#define DAEMON_HINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/table.h"
#include "lib/unwind/unwind.h"

struct hint {
	uint64_t top;
	uint32_t sent;
};

/* Of the threads of one target, by tid. */
struct hints {
	struct table by_tid; /* index in list */
	struct hint *list;
	uint32_t n;
};

/* None. Allocates nothing. */
void hints_init(struct hints *h, uint64_t hash_seed);
void hints_fini(struct hints *h);

/*
 * Of a thread's stack as it was walked now: true if capture ought to be told
 * *ret_top (struct msg_stack_hint), and counts as told then. Without memory
 * there is no hint.
 */
bool hints_take(struct hints *h, uint32_t tid, const struct unwind_stack *stack,
		uint64_t *ret_top);

#endif
