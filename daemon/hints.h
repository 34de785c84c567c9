/*
 * What capture is told of how deep threads' stacks are: it copies no more of
 * them than walks have needed. A thread whose stack grows gets another hint.
 */
#ifndef DAEMON_HINTS_H
#define DAEMON_HINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/msg.h"
#include "lib/base/table.h"
#include "lib/unwind/unwind.h"

/* What a thread was told, as struct msg_stack_hint has it. */
struct hint {
	uint64_t top;
	uint64_t second;
	uint64_t second_sp;
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
 * Of a thread's stack as it was walked now, from stack pointer sp: what capture
 * ought to be told, and counts as told then; NULL if nothing. Valid until the
 * next call. Without memory there is no hint.
 */
const struct hint *hints_take(struct hints *h, uint32_t tid, uint64_t sp,
			      const struct unwind_stack *stack);

/* It, as it is sent. */
struct msg_stack_hint hint_message(uint32_t target, uint32_t tid,
				   const struct hint *hint);

#endif
