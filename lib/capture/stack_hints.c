#include "lib/capture/stack_hints.h"

#include <stdlib.h>

#include "lib/capture/ptrace/arch.h"

/*
 * The most bytes of an unknown stack. Its thread may have many stacks (coroutines), and the largest
 * copy takes 0.3 ms, too long for each sample.
 */
#define OTHER_STACK_MAX (128u * 1024)

/*
 * The bytes of the own stack that are copied as long as there is no hint: this many, or more if the
 * thread was last seen deeper than that on its own stack. The first hint comes after the first
 * samples.
 */
#define OWN_STACK_GUESS (256u * 1024)
/* Such a copy begins this far below the stack pointer that was last seen on the own stack. */
#define OWN_STACK_SLACK (16u * 1024)

void stack_hints_fini(struct stack_hints *s)
{
	free(s->list);
	*s = (struct stack_hints){0};
}

/*
 * Returns true if a thread with this stack pointer can be on a stack that ends at top, and the copy
 * can reach that end.
 */
static bool may_end_at(uint64_t sp, uint64_t top)
{
	return top > sp && top - arch_stack_start(sp) <= SAMPLE_STACK_MAX;
}

static bool is_own(const struct stack_hints *s, uint64_t addr)
{
	return addr < s->own_end && s->own_end - addr <= SAMPLE_OWN_STACK_MAX;
}

/* Returns the most bytes of the own stack that a sample copies. */
static uint64_t own_max(const struct stack_hints *s)
{
	return s->whole ? SAMPLE_WHOLE_MAX : SAMPLE_STACK_MAX;
}

/* Returns the same for the own stack. */
static bool may_end_at_own(const struct stack_hints *s, uint64_t sp)
{
	return s->own_end > sp && s->own_end - arch_stack_start(sp) <= own_max(s);
}

/* Returns true if the hint says that the reader needs the whole of a deep own stack. */
static bool asks_for_whole(const struct stack_hints *s, uint64_t sp, uint64_t top, uint64_t second)
{
	return second == 0 && is_own(s, sp) && top >= s->own_end && !may_end_at(sp, s->own_end);
}

/*
 * Returns the hint for the stack that sp is on: of the hints that end above sp, the one with the
 * lowest end. Returns NULL if there is none.
 */
static struct stack_hint *find(const struct stack_hints *s, uint64_t sp)
{
	struct stack_hint *best = NULL;

	for (uint32_t i = 0; i < s->n; i++)
		if (may_end_at(sp, s->list[i].top) && (best == NULL || s->list[i].top < best->top))
			best = &s->list[i];
	return best;
}

/*
 * Removes the hints whose top is above sp and not above top, because they are about the same stack.
 * Returns the lowest stack pointer of sp and these hints.
 */
static uint64_t remove_between(struct stack_hints *s, uint64_t sp, uint64_t top)
{
	uint64_t low = sp;
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n; i++) {
		if (s->list[i].top <= sp || s->list[i].top > top)
			s->list[n++] = s->list[i];
		else
			low = min_u64(low, s->list[i].low);
	}
	s->n = n;
	return low;
}

/* Returns a free entry, or the least recently used one. */
static struct stack_hint *add(struct stack_hints *s)
{
	struct stack_hint *oldest = &s->list[0];

	if (s->n < STACK_HINTS_MAX)
		return &s->list[s->n++];
	for (uint32_t i = 1; i < s->n; i++)
		if (s->list[i].last_use < oldest->last_use)
			oldest = &s->list[i];
	return oldest;
}

void stack_hints_take(struct stack_hints *s, uint64_t sp, uint64_t top, uint64_t second)
{
	uint64_t low;

	if (asks_for_whole(s, sp, top, second)) {
		s->whole = true;
		(void)remove_between(s, s->own_end - min_u64(s->own_end, SAMPLE_WHOLE_MAX),
				     s->own_end);
		return;
	}
	if (!may_end_at(sp, top))
		return;
	if (s->list == NULL)
		s->list = calloc(STACK_HINTS_MAX, sizeof(*s->list));
	if (s->list == NULL)
		return;
	low = remove_between(s, sp, top);
	*add(s) = (struct stack_hint){
		.low = low, .top = top, .second = second, .last_use = ++s->uses};
	s->second = second;
}

/* Guesses the address from which the own stack is needed. */
static uint64_t guess_second(const struct stack_hints *s)
{
	const uint64_t guess = s->own_end - min_u64(s->own_end, OWN_STACK_GUESS);

	if (s->list != NULL)
		return s->second;
	/* The thread may have gone deeper since then, before it left its own stack. */
	if (s->own_sp != 0)
		return min_u64(guess, s->own_sp - min_u64(s->own_sp, OWN_STACK_SLACK));
	return guess;
}

static void plan_second(const struct stack_hints *s, uint64_t addr, struct stack_plan *ret)
{
	if (!is_own(s, addr))
		return;
	ret->second = addr;
	ret->second_size = (size_t)min_u64(s->own_end - addr, own_max(s));
	ret->second_is_capped = s->own_end - addr > own_max(s);
}

/* Plans a sample of a stack without a certain hint. */
static void plan_by_guess(const struct stack_hints *s, const struct stack_hint *hint, uint64_t sp,
			  struct stack_plan *ret)
{
	const bool on_own = is_own(s, sp);

	ret->size = SAMPLE_STACK_MAX;
	if (hint != NULL)
		ret->size = (size_t)(hint->top - arch_stack_start(sp));
	else if (s->list != NULL && !on_own)
		ret->size = OTHER_STACK_MAX;
	if (hint != NULL)
		plan_second(s, hint->second, ret);
	else if (s->own_end != 0 && !on_own)
		plan_second(s, guess_second(s), ret);
	ret->known.second = ret->second;
}

void stack_hints_plan(struct stack_hints *s, uint64_t sp, struct stack_plan *ret)
{
	struct stack_hint *hint = find(s, sp);

	*ret = (struct stack_plan){.known.own_end = s->own_end};
	if (is_own(s, sp))
		s->own_sp = sp;
	/* The own stack may end below another one for which there is a hint. */
	if (hint != NULL && sp < hint->low && s->own_end < hint->top && may_end_at_own(s, sp))
		hint = NULL;
	if (hint != NULL)
		hint->last_use = ++s->uses;
	if (hint != NULL && sp >= hint->low) {
		ret->known.top = hint->top;
		ret->known.second = hint->second;
		plan_second(s, hint->second, ret);
	} else if (hint == NULL && may_end_at_own(s, sp)) {
		ret->known.top = s->own_end;
	} else {
		/* The thread may be deeper on the same stack, or on another stack below it. */
		plan_by_guess(s, hint, sp, ret);
	}
	if (ret->known.top != 0)
		ret->size = (size_t)(ret->known.top - arch_stack_start(sp));
}
