#include "daemon/unwind/hints.h"

#include "lib/base/util.h"

/* Beyond the bytes that a walk lacked: the next frames need some, too. */
#define SLACK_BYTES (16u * 1024)

/* Copying this takes some 40 us: worth a message, if nothing came of it. */
#define WASTE_BYTES (64u * 1024)

/* A frame of this size is left out of the copy, if it makes it too large. */
#define LARGE_FRAME (64u * 1024)

static uint64_t less_slack(uint64_t addr)
{
	return addr - min_u64(addr, SLACK_BYTES);
}

/* The highest top that capture takes of a sample that starts at addr. */
static uint64_t highest_top(uint64_t addr)
{
	return addr + SAMPLE_STACK_MAX - UNWIND_RED_ZONE_MAX;
}

/* Where capture does not know yet where the own stack ends it will find out. */
static bool is_own(const struct sample_known *known, uint64_t addr)
{
	return known->own_end == 0 ||
	       (addr < known->own_end && known->own_end - addr <= SAMPLE_OWN_STACK_MAX);
}

/* Where the sample lacks bytes of the own stack from; 0: nowhere. */
static uint64_t second_lacking(const struct unwind_sample *sample, const struct unwind_stack *stack)
{
	const struct sample_known *known = &sample->known;
	uint64_t second = stack->second;

	/*
	 * The copy would be too large, were it not for one frame. Where capture
	 * does not know the end of the own stack, this makes it find out.
	 */
	if (stack->missing > highest_top(sample->stack.addr) &&
	    (known->own_end == 0 || stack->missing - stack->stack_top > LARGE_FRAME))
		second = stack->missing - min_u64(stack->missing, UNWIND_RED_ZONE_MAX);
	if (second == 0 || !is_own(known, second) ||
	    (known->second != 0 && known->second <= second && is_own(known, known->second)))
		return 0;
	return second;
}

/* Up to where the sample lacks bytes of its stack; 0: nothing that helps. */
static uint64_t top_lacking(const struct unwind_sample *sample, const struct unwind_stack *stack)
{
	const uint64_t highest = highest_top(sample->stack.addr);
	uint64_t more = SLACK_BYTES;

	if (stack->missing <= sample->known.top || stack->missing > highest)
		return 0;
	/* The stack goes on, and may be much deeper. */
	if (stack->end == UNWIND_END_CAPPED)
		more = max_u64(more, sample->stack.size);
	return min_u64(stack->missing + more, highest);
}

/*
 * From where the own stack is to be copied as a whole; 0: nowhere. It is deeper
 * than a copy of any stack may be, and to leave one frame out was not enough,
 * or is of no use.
 */
static uint64_t whole_lacking(const struct unwind_sample *sample, const struct unwind_stack *stack)
{
	const struct sample_known *known = &sample->known;
	const uint64_t own_end = known->own_end;
	uint64_t from = 0;

	if (stack->missing > known->top && stack->missing <= own_end &&
	    (stack->missing > highest_top(sample->stack.addr) || known->top != 0 ||
	     known->second != 0))
		from = sample->stack.addr;
	else if (stack->end == UNWIND_END_CAPPED && stack->second_from != 0)
		from = sample->second.addr;
	if (from >= own_end || own_end - from > SAMPLE_WHOLE_MAX - UNWIND_RED_ZONE_MAX)
		return 0;
	return from;
}

/* Were many bytes copied of which a walk to the root has read none? */
static bool is_in_vain(const struct unwind_sample *sample, const struct unwind_stack *stack)
{
	const struct sample_known *known = &sample->known;
	const uint64_t end = sample->stack.addr + sample->stack.size;

	if (stack->end != UNWIND_END_ROOT)
		return false;
	if (end - stack->stack_top > WASTE_BYTES)
		return true;
	/* What the reader has asked for other samples may need. */
	if (known->top != 0 || sample->second.size == 0)
		return false;
	return stack->second_from == 0 || stack->second_from - known->second > WASTE_BYTES;
}

bool hint_wanted(uint32_t target, const struct unwind_sample *sample,
		 const struct unwind_stack *stack, struct msg_stack_hint *ret)
{
	const struct sample_known *known = &sample->known;
	const uint64_t second = second_lacking(sample, stack);
	const uint64_t whole = whole_lacking(sample, stack);
	const uint64_t top = second != 0 ? 0 : top_lacking(sample, stack);

	/* That a frame is left out comes first: it makes the copy small. */
	if (whole != 0 && (second == 0 || known->second != 0)) {
		*ret = (struct msg_stack_hint){
			.h = MSG_HEADER(MSG_STACK_HINT),
			.target = target,
			.tid = sample->tid,
			.sp = whole,
			.top = known->own_end,
		};
		return true;
	}
	if (second == 0 && top == 0 && !is_in_vain(sample, stack))
		return false;
	*ret = (struct msg_stack_hint){
		.h = MSG_HEADER(MSG_STACK_HINT),
		.target = target,
		.tid = sample->tid,
		.sp = sample->stack.addr,
		.top = stack->stack_top,
		.second = known->second,
	};
	if (second != 0) {
		ret->second = less_slack(second);
		/* The walk may have come to nonsense: what is known stays. */
		ret->top = max_u64(known->top, stack->stack_top);
	} else if (top != 0) {
		ret->top = top;
	} else if (known->top == 0) {
		/* What was a guess is known now. */
		ret->second = less_slack(stack->second_from);
	}
	/* A walk that has read nothing: above the stack pointer, all the same.
	 */
	ret->top = max_u64(ret->top, sample->stack.addr + UNWIND_RED_ZONE_MAX + 8);
	return true;
}

bool hints_begin(struct hints *h, uint32_t tid, uint64_t time_ns, uint64_t now_ns)
{
	const size_t i = tid % HINTS_PLACES;

	if (h->last[i].tid == tid && time_ns <= h->last[i].sent_ns)
		return false;
	h->last[i].tid = tid;
	h->last[i].sent_ns = now_ns;
	return true;
}
