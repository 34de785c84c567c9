/*
 * Decides how many bytes of stack a sample copies: stack_hints_plan(), called before each sample.
 * The unwinder sends hints (struct msg_stack_hint) about the stacks that a thread uses, for
 * stack_hints_take(). The thread's own stack is the one on which it began. A hint says where one
 * stack ends. A hint about another stack than the own one also says from which address on the
 * unwinder needs the own stack, too: the second range of a sample. Stacks grow downwards, so a
 * stack ends at its highest address.
 *
 * Only this module keeps the hints, until the thread ends. Each sample has what was known when it
 * was taken (struct sample_known), so the unwinder need not remember its hints. Hints may be wrong
 * or hostile, so the module checks them against the stack pointer and the end of the own stack at
 * each use.
 */
#ifndef LIB_CAPTURE_STACK_HINTS_H
#define LIB_CAPTURE_STACK_HINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/capture/sample.h"

/*
 * The most hints of a thread, one for each stack; a new hint replaces the least recently used one.
 * A thread with more stacks, such as a scheduler of coroutines, is often on a stack without a hint.
 * Then the sample copies a guess, usually 128 KiB of that stack.
 */
#define STACK_HINTS_MAX 32

struct stack_hint {
	uint64_t low;	   /* the lowest stack pointer for which the hint was given */
	uint64_t top;	   /* the end of the stack: the unwinder needs no byte from here on */
	uint64_t second;   /* the unwinder needs the own stack from here on; 0: not needed */
	uint64_t last_use; /* value of stack_hints.uses at the last use of this hint */
};

/* {0}: nothing is known of the thread. */
struct stack_hints {
	uint64_t own_end; /* end of the thread's own stack; 0: not known */
	uint64_t own_sp; /* the stack pointer when the thread was last on its own stack; 0: never */
	bool whole;	 /* copy the own stack up to its end, SAMPLE_WHOLE_MAX bytes at most */
	/* `second` of the last hint, which is the guess for stacks without a hint. */
	uint64_t second;
	uint64_t uses;		 /* number of uses of all hints */
	struct stack_hint *list; /* room for STACK_HINTS_MAX; NULL before the first hint */
	uint32_t n;
};

/* Frees the list; *s is {0} then. Safe for {0}. */
void stack_hints_fini(struct stack_hints *s);

/*
 * Takes a hint: the stack that the thread was on, with stack pointer sp, ends at top. second: the
 * address from which the unwinder needs the own stack, too; 0: not needed.
 *
 * A hint asks for the whole own stack if all of this holds:
 * - sp is on the own stack, more than SAMPLE_STACK_MAX below own_end;
 * - top is not below own_end;
 * - second is 0.
 * From then on samples copy the whole own stack, SAMPLE_WHOLE_MAX bytes at most. Removes the hints
 * whose top is in the last SAMPLE_WHOLE_MAX bytes of the own stack.
 *
 * Any other hint replaces earlier hints with a top between sp and top, since they are about the
 * same stack. Such a hint is ignored if top is not above sp, or if there are more than
 * SAMPLE_STACK_MAX bytes from the red zone below sp up to top. Allocates once for each thread; if
 * memory is short, the hint is lost.
 */
void stack_hints_take(struct stack_hints *s, uint64_t sp, uint64_t top, uint64_t second);

/* Sets the end of the thread's own stack if it is not known yet; 0 changes nothing. */
static inline void stack_hints_set_own_end(struct stack_hints *s, uint64_t own_end)
{
	if (s->own_end == 0)
		s->own_end = own_end;
}

/* The plan of a sample: which bytes it copies. */
struct stack_plan {
	/* What is known of the thread's stacks: goes into the sample. */
	struct sample_known known;
	/* Bytes to copy of the stack that the thread is on, from arch_stack_start(sp) on. */
	size_t size;
	/*
	 * A range of the thread's own stack, if the thread is on another one: start, and size in
	 * bytes (0: none).
	 */
	uint64_t second;
	size_t second_size;
	bool second_is_capped; /* the own stack goes on after that range */
};

/* Makes the plan for a sample with this stack pointer, which may be any number. Updates s. */
void stack_hints_plan(struct stack_hints *s, uint64_t sp, struct stack_plan *ret);

#endif
