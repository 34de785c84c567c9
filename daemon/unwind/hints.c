#include "daemon/unwind/hints.h"

#include "lib/base/util.h"

/* Bytes to copy beyond those that the unwind lacked, for the next frames. */
#define SLACK_BYTES (16u * 1024)

/* Copying so many bytes takes some 40 us; if they were not needed, a hint is worth it. */
#define WASTE_BYTES (64u * 1024)

/* A frame larger than this is skipped if the copy would be too large with it. */
#define LARGE_FRAME (64u * 1024)

static uint64_t minus_slack(uint64_t addr)
{
	return addr - min_u64(addr, SLACK_BYTES);
}

/* Returns the highest top that capture accepts for a sample that begins at addr. */
static uint64_t highest_top(uint64_t addr)
{
	return addr + SAMPLE_STACK_MAX - UNWIND_RED_ZONE_MAX;
}

/*
 * Returns true if addr is on the thread's own stack, or if capture does not know yet
 * where that stack ends: the hint makes capture find out.
 */
static bool is_on_own_stack(const struct sample_known *known, uint64_t addr)
{
	return known->own_end == 0 ||
	       (addr < known->own_end && known->own_end - addr <= SAMPLE_OWN_STACK_MAX);
}

/* Returns the address from which the sample lacks bytes of the own stack; 0: none. */
static uint64_t find_missing_second(const struct unwind_sample *sample,
				    const struct unwind_stack *stack)
{
	const struct sample_known *known = &sample->known;
	uint64_t second = stack->second;

	/*
	 * The copy would be too large because of one frame. If capture does not
	 * know the end of the own stack, this hint makes it find out.
	 */
	if (stack->missing > highest_top(sample->stack.addr) &&
	    (known->own_end == 0 || stack->missing - stack->stack_top > LARGE_FRAME))
		second = stack->missing - min_u64(stack->missing, UNWIND_RED_ZONE_MAX);
	if (second == 0 || !is_on_own_stack(known, second) ||
	    (known->second != 0 && known->second <= second &&
	     is_on_own_stack(known, known->second)))
		return 0;
	return second;
}

/* Returns the address up to which the sample lacks bytes of its stack; 0: none. */
static uint64_t find_missing_top(const struct unwind_sample *sample,
				 const struct unwind_stack *stack)
{
	const uint64_t highest = highest_top(sample->stack.addr);
	uint64_t more = SLACK_BYTES;

	if (stack->missing <= sample->known.top || stack->missing > highest)
		return 0;
	/* The stack continues and may be much deeper. */
	if (stack->end == UNWIND_END_CAPPED)
		more = max_u64(more, sample->stack.size);
	return min_u64(stack->missing + more, highest);
}

/*
 * Returns the address from which the whole own stack is to be copied; 0: none. This
 * is for a stack that is deeper than the usual copy, where skipping one frame was
 * not enough or is not possible.
 */
static uint64_t find_missing_whole(const struct unwind_sample *sample,
				   const struct unwind_stack *stack)
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

/* Returns true if the unwind reached the root without reading many of the copied bytes. */
static bool has_unused_bytes(const struct unwind_sample *sample, const struct unwind_stack *stack)
{
	const struct sample_known *known = &sample->known;
	const uint64_t end = sample->stack.addr + sample->stack.size;

	if (stack->end != UNWIND_END_ROOT)
		return false;
	if (end - stack->stack_top > WASTE_BYTES)
		return true;
	/* Other samples may need the bytes that an earlier hint asked for. */
	if (known->top != 0 || sample->second.size == 0)
		return false;
	return stack->second_from == 0 || stack->second_from - known->second > WASTE_BYTES;
}

bool hints_make(uint32_t target, const struct unwind_sample *sample,
		const struct unwind_stack *stack, struct msg_stack_hint *ret)
{
	const struct sample_known *known = &sample->known;
	const uint64_t second = find_missing_second(sample, stack);
	const uint64_t whole = find_missing_whole(sample, stack);
	const uint64_t top = second != 0 ? 0 : find_missing_top(sample, stack);

	/* Skipping a frame comes first, because it keeps the copy small. */
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
	if (second == 0 && top == 0 && !has_unused_bytes(sample, stack))
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
		ret->second = minus_slack(second);
		/* The unwind may be wrong from here, so a higher known top stays. */
		ret->top = max_u64(known->top, stack->stack_top);
	} else if (top != 0) {
		ret->top = top;
	} else if (known->top == 0) {
		/* Replaces capture's guess by the known address. */
		ret->second = minus_slack(stack->second_from);
	}
	/* The top is above the stack pointer even if the unwind has read nothing. */
	ret->top = max_u64(ret->top, sample->stack.addr + UNWIND_RED_ZONE_MAX + 8);
	return true;
}

bool hints_want_registers(uint32_t target, const struct unwind_sample *sample,
			  const struct unwind_stack *stack, struct msg_want_registers *ret)
{
	struct msg_want_registers m = {
		.h = MSG_HEADER(MSG_WANT_REGISTERS),
		.target = target,
		.tid = sample->tid,
	};

	if (!unwind_lacks_return_address(sample, stack, &m.sp, &m.pc))
		return false;
	*ret = m;
	return true;
}

bool hints_may_send(struct hints *h, uint32_t tid, uint64_t time_ns, uint64_t now_ns)
{
	const size_t i = tid % HINTS_SLOTS;

	if (h->last[i].tid == tid && time_ns <= h->last[i].sent_ns)
		return false;
	h->last[i].tid = tid;
	h->last[i].sent_ns = now_ns;
	return true;
}

bool hints_lacks_own_stack(const struct unwind_sample *sample, const struct unwind_stack *stack)
{
	const struct sample_known *known = &sample->known;

	if (stack->second == 0 ||
	    (known->own_end != 0 && is_on_own_stack(known, sample->stack.addr)))
		return false;
	return find_missing_second(sample, stack) != 0;
}

bool hints_must_drop(struct hints *h, uint32_t tid, bool lacks)
{
	const size_t i = tid % HINTS_SLOTS;

	if (!lacks ||
	    h->last[i].dropped >= HINTS_DROPS_FIRST + h->last[i].kept / HINTS_DROPS_SHARE) {
		h->last[i].kept++;
		return false;
	}
	h->last[i].dropped++;
	return true;
}
