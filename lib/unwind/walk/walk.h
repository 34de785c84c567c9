/*
 * One step from a frame to its caller, on a copied stack.
 */
#ifndef LIB_UNWIND_WALK_WALK_H
#define LIB_UNWIND_WALK_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lib/unwind/rules/expr.h"
#include "lib/unwind/space/pc_info.h"
#include "lib/unwind/unwind.h"

/* A frame, and all that the next step needs. */
struct walk_frame {
	struct frame_regs regs;
	uint64_t addr;		       /* as it is sent */
	bool is_leaf;		       /* look up addr itself; else addr - 1 */
	bool by_heuristic;	       /* how this frame was found */
	bool interrupted;	       /* by a signal: the frame before is a trampoline */
	bool not_called;	       /* its step found that no call left its address */
	bool sp_is_minimum;	       /* its stack pointer is that or above */
	uint32_t signals;	       /* signal frames passed until here */
	const struct pc_info *pc_info; /* of walk_lookup, if its address is that */
};

/* How a step came to its caller. */
struct walk_step {
	/*
	 * By a struct rule, as it stands there, or to the root by one: nothing
	 * else than the address, sp and fp of the frame, and the words below,
	 * had a part in it.
	 */
	bool is_simple;
	bool fp_read;
	int32_t ra_at; /* where the words were, from the caller's sp */
	int32_t fp_at;
	struct image *image; /* whose rule it was */
};

struct walk {
	struct unwind_space *space;
	struct stack_bytes stack;
	bool capped;	    /* the stack goes on above its bytes */
	bool second_capped; /* the same of the second one */
	/*
	 * Restore all callee-saved registers, not only the frame pointer: a
	 * walk that ends with an unknown register is worth a second try.
	 */
	bool all_saved;
	/*
	 * The end of the highest byte read of the first stack, and of what
	 * could not be read.
	 */
	uint64_t top;
	uint64_t missing;
	uint32_t searched;     /* by search.h, since the walk began */
	uint64_t second;       /* where a second stack is needed from; 0: nowhere */
	struct walk_step step; /* the last one */
};

/* The end of a step that is no end: there is a caller. */
#define WALK_ON UNWIND_END_N

/* The address to look up for f. */
static inline uint64_t walk_lookup(const struct walk_frame *f)
{
	return f->is_leaf ? f->addr : f->addr - 1;
}

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
enum unwind_end walk_by_simple_rule(struct walk *w, struct walk_frame *f, const struct rule *rule,
				    struct image *image);

/* By a full rule, that of p. */
enum unwind_end walk_by_full_rule(struct walk *w, struct walk_frame *f, const struct pc_info *p);

/* By the rule of p, which is one. */
static inline enum unwind_end walk_by_rule(struct walk *w, struct walk_frame *f,
					   const struct pc_info *p)
{
	if (p->rule->cfa != RULE_CFA_FULL)
		return walk_by_simple_rule(w, f, p->rule, p->image);
	return walk_by_full_rule(w, f, p);
}

#endif
