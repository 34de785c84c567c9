/*
 * The parts of walk_step, and what they share: of walk*.c only.
 */
#ifndef LIB_UNWIND_WALK_WALK_STEPS_H
#define LIB_UNWIND_WALK_WALK_STEPS_H

#include <string.h>

#include "lib/unwind/cpu.h"
#include "lib/unwind/walk/walk.h"

#define SP CPU_SP
#define FP CPU_FP
#define PC CPU_PC
#define RA CPU_RA

#define BIT(n) (UINT64_C(1) << (n))

static inline bool walk_read_word(struct walk *w, uint64_t addr, uint64_t *ret)
{
	uint64_t at = addr - w->stack.lo;
	uint64_t size = w->stack.hi - w->stack.lo;

	if (addr < w->stack.lo || size < 8 || at > size - 8)
		return stack_read(&w->stack, addr, 8, ret) == EXPR_OK;
	memcpy(ret, w->stack.bytes + at, 8);
	if (addr + 8 > w->top)
		w->top = addr + 8;
	return true;
}

/* The instruction that f executes next. */
static inline uint64_t walk_next_pc(const struct walk_frame *f)
{
	return f->is_leaf || f->interrupted ? walk_lookup(f) : f->addr;
}

/* Why the n bytes at addr could not be read. */
enum unwind_end walk_unreadable(struct walk *w, const struct walk_frame *f, uint64_t addr,
				size_t n);

/* To the caller whose return address is ra; its registers are in place. */
enum unwind_end walk_enter(struct walk *w, struct walk_frame *f, uint64_t ra, bool by_heuristic);

/* To the frame that a signal interrupted: its pc is no return address. */
enum unwind_end walk_enter_interrupted(struct walk *w, struct walk_frame *f);

/* By a rule that fits into a struct rule; image is whose it is. */
enum unwind_end walk_simple(struct walk *w, struct walk_frame *f, const struct rule *rule,
			    struct image *image);

/* By the rule of p, which is one. */
enum unwind_end walk_by_rule(struct walk *w, struct walk_frame *f, const struct place *p);

/* Where p has no rule. */
enum unwind_end walk_without_cfi(struct walk *w, struct walk_frame *f, const struct place *p);

/* By the ways that the code at f can take to a ret; UNWIND_END_NO_CFI: none. */
enum unwind_end walk_way_back(struct walk *w, struct walk_frame *f);

#endif
