#include "daemon/hints.h"

#include <stdlib.h>

#include "daemon/child.h"
#include "lib/base/util.h"

/* Hints that a thread gets; one that changes more often has several stacks. */
#define HINTS_MAX 16

/* Beyond the bytes that a walk was short of. */
#define HINT_SLACK 16384

void hints_init(struct hints *h, uint64_t hash_seed)
{
	*h = (struct hints){0};
	table_init(&h->by_tid, hash_seed);
}

void hints_fini(struct hints *h)
{
	table_fini(&h->by_tid);
	free(h->list);
	h->list = NULL;
	h->n = 0;
}

static struct hint *hint_of(struct hints *h, uint32_t tid)
{
	struct hint *list;
	uint32_t index;

	if (table_get(&h->by_tid, tid, &index))
		return &h->list[index];
	if ((h->n & (h->n + 1)) == 0) {
		list = reallocarray(h->list, 2 * ((size_t)h->n + 1),
				    sizeof(*list));
		if (list == NULL)
			return NULL;
		h->list = list;
	}
	if (table_put(&h->by_tid, tid, h->n) < 0)
		return NULL;
	h->list[h->n] = (struct hint){0};
	return &h->list[h->n++];
}

/* A shallower stack needs no new hint. */
static bool take_top(struct hint *hint, const struct unwind_stack *stack)
{
	uint64_t top = stack->end == UNWIND_END_BAD_CFA ? 0 : stack->stack_top;

	/* What was not there was needed: the frames above will be, too. */
	if (stack->end == UNWIND_END_UNREADABLE && top != 0)
		top += HINT_SLACK;
	if (hint->sent > 0 &&
	    (top == hint->top || (top != 0 && top < hint->top)))
		return false;
	hint->top = top;
	return true;
}

/* What the hint before this has asked for is not asked for again. */
static bool take_second(struct hint *hint, uint64_t sp,
			const struct unwind_stack *stack)
{
	if (stack->second == 0 ||
	    (hint->second != 0 && stack->second >= hint->second &&
	     stack->second - hint->second <= SAMPLE_STACK_MAX))
		return false;
	hint->second = stack->second - min_u64(stack->second, HINT_SLACK);
	hint->second_sp = sp;
	return true;
}

const struct hint *hints_take(struct hints *h, uint32_t tid, uint64_t sp,
			      const struct unwind_stack *stack)
{
	struct hint *hint = hint_of(h, tid);
	bool second;

	if (hint == NULL || hint->sent >= HINTS_MAX)
		return NULL;
	second = take_second(hint, sp, stack);
	if (!take_top(hint, stack) && !second)
		return NULL;
	hint->sent++;
	return hint;
}

struct msg_stack_hint hint_message(uint32_t target, uint32_t tid,
				   const struct hint *hint)
{
	return (struct msg_stack_hint){
		.h = MSG_HEADER(MSG_STACK_HINT, msg_stack_hint),
		.target = target,
		.tid = tid,
		.top = hint->top,
		.second = hint->second,
		.second_sp = hint->second_sp,
	};
}
