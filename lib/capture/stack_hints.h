/*
 * What capture knows of the stacks of one thread: where each ends, and where
 * the thread goes on, on its own stack, when its work on another one is over.
 * Capture copies a sample's stack by it.
 *
 * The unwinder tells it in hints (struct msg_stack_hint). This is the only
 * place that keeps them: they end with the thread, with an exec, and with
 * capture. Each sample says what was known for it (struct sample_known), so
 * that the unwinder need not remember what it has said.
 *
 * Hints may be wrong, or hostile: they are checked against the stack pointer
 * and the end of the thread's own stack whenever they are used.
 */
#ifndef LIB_CAPTURE_STACK_HINTS_H
#define LIB_CAPTURE_STACK_HINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/capture/sample.h"

/*
 * Stacks of a thread that hints are kept for; the one that was used the longest
 * ago goes first. Of a thread with more, such as a scheduler of coroutines, the
 * others are copied as those of which nothing is known.
 */
#define STACK_HINTS_MAX 32

struct stack_hint {
	uint64_t low;	 /* the lowest stack pointer that it was given for */
	uint64_t top;	 /* exclusive: above it nothing is needed */
	uint64_t second; /* from here on of the own stack; 0: nothing */
	uint64_t used;
};

/* {0} is a thread of which nothing is known. */
struct stack_hints {
	uint64_t own_end; /* of the thread's own stack; 0: not known */
	uint64_t own_sp;  /* the stack pointer when it was last on it, or 0 */
	bool whole;	  /* copy it up to its end, SAMPLE_WHOLE_MAX bytes at most */
	/* Of the last hint: the guess for stacks of which none is known. */
	uint64_t second;
	uint64_t clock;
	struct stack_hint *list; /* STACK_HINTS_MAX; NULL before the first hint */
	uint32_t n;
};

/* Frees what hints have allocated; s is {0} then. */
void stack_hints_fini(struct stack_hints *s);

/*
 * A hint: the stack that the thread was on, with stack pointer sp, ends at top,
 * and second (0: none) is where it goes on. It takes the place of hints by
 * which that stack ends lower. One that no sample with this sp could use is
 * ignored. Allocates once for a thread; without memory the hint is lost.
 *
 * sp more than SAMPLE_STACK_MAX below the end of the thread's own stack, top
 * not below that end, and no second: from now on the whole of the own stack is
 * copied, SAMPLE_WHOLE_MAX bytes at most. Nothing that hints have left out of
 * it is left out any more.
 */
void stack_hints_take(struct stack_hints *s, uint64_t sp, uint64_t top, uint64_t second);

/* What to copy for a sample. */
struct stack_plan {
	/* What is known, as the sample says it. */
	struct sample_known known;
	/* Bytes of the stack that the thread is on, red zone included. */
	size_t size;
	/* And of its own, from second on, if that is another; 0: none. */
	uint64_t second;
	size_t second_size;
	bool second_is_capped; /* the own stack goes on above that */
};

/* Of a thread with this stack pointer, which may be anything. */
void stack_hints_plan(struct stack_hints *s, uint64_t sp, struct stack_plan *ret);

#endif
