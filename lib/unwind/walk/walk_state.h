/*
 * The state of a walk from the innermost frame of a copied stack to the root. The modules of this
 * folder share it:
 *
 *     walk.h       the loop: step by step to the end
 *     step.h       one step: by the rule of the frame's address, otherwise by a guess
 *     rule_step.h  exact steps, by rules
 *     search.h     finds a frame pointer that a rule needs and the walk does not know
 *     memo.h       reuses the last walk of the thread
 *
 * A walk reads registers and stack bytes of the sample, and nothing else of the target.
 */
#ifndef LIB_UNWIND_WALK_WALK_STATE_H
#define LIB_UNWIND_WALK_WALK_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lib/unwind/cpu.h"
#include "lib/unwind/rules/expr.h"
#include "lib/unwind/space/pc_info.h"
#include "lib/unwind/unwind.h"

/*
 * The limit of walk.guess_cost, in units of about 5 ns: about 0.7 ms for all guesses and
 * searches of a walk. One long search takes half of the limit. A target can arrange its memory so
 * that each frame needs a search; such a walk ends when the limit is reached.
 */
#define WALK_GUESS_COST_MAX (1u << 17)

/*
 * A frame of the walk, and the state from which the next step finds its caller. addr of a caller
 * is its return address, after the call. The frame that a signal interrupted has no call: its addr
 * is its pc + CPU_PC_STEP, so that the lookup at addr - 1 finds the instruction at pc.
 * A later look-up may overwrite *pc_info: before use compare pc_info->addr with walk_lookup().
 */
struct walk_frame {
	struct frame_regs regs;
	uint64_t addr;		       /* as in unwind_frame */
	bool is_leaf;		       /* as in unwind_frame */
	bool by_heuristic;	       /* as in unwind_frame */
	bool interrupted;	       /* by a signal: the walk came here from its trampoline */
	bool no_call_before;	       /* step_to_caller() found that no call is before addr */
	bool sp_is_minimum;	       /* the real stack pointer may be above that in regs */
	uint32_t signals;	       /* number of interrupted frames from the leaf to here */
	const struct pc_info *pc_info; /* pc_info_at() of walk_lookup(); NULL: not looked up */
};

/* How the last step found the caller. memo.h keeps frames that simple steps have found. */
struct walk_step {
	/*
	 * The step was made by a simple rule. So the step depended only on the address, sp and fp
	 * of the called frame, and on the stack words at ra_at and, if fp_read is set, fp_at.
	 */
	bool is_simple;
	bool fp_read;
	int32_t ra_at; /* offsets of these words from the caller's sp */
	int32_t fp_at;
	struct image *image; /* the image that has the rule; may be NULL */
};

struct walk {
	struct unwind_space *space;
	struct stack_bytes stack;
	bool capped;	    /* the stack continues above the copied bytes */
	bool second_capped; /* the same for the second range of the stack */
	/*
	 * Restore all callee-saved registers, not only the frame pointer. Few rules need the
	 * others, so all_saved is not set in the first walk of a sample. If that walk ends with
	 * UNWIND_END_UNKNOWN_REGISTER, it is repeated with all_saved.
	 */
	bool all_saved;
	bool confirming;       /* set while step.c tries whether a guess leads to the root */
	uint64_t top;	       /* as unwind_stack.stack_top */
	uint64_t missing;      /* as unwind_stack.missing */
	uint32_t guess_cost;   /* as unwind_stack.guess_cost; at most WALK_GUESS_COST_MAX */
	uint64_t second;       /* as unwind_stack.second */
	struct walk_step step; /* the last one */
};

/* The result of a step that found a caller. Any other result is the reason why it found none. */
#define WALK_ON UNWIND_END_N

/* Returns the address by which to look up a frame: its pc, or one within the call before addr. */
static inline uint64_t walk_lookup(const struct walk_frame *f)
{
	return f->is_leaf ? f->addr : f->addr - 1;
}

/*
 * Returns true if addr shows the frame's pc: addr is the pc of a leaf, and pc + CPU_PC_STEP of a
 * frame that a signal interrupted. Returns false if addr is a return address.
 */
static inline bool walk_addr_is_pc(const struct walk_frame *f)
{
	return f->is_leaf || f->interrupted;
}

/*
 * Reads 8 bytes at addr from either range of the copied stack. Raises w->top to their end, if they
 * are in the first range. Returns false if they were not copied.
 */
static inline bool walk_read_word(struct walk *w, uint64_t addr, uint64_t *ret)
{
	uint64_t at = addr - w->stack.lo;
	uint64_t size = w->stack.hi - w->stack.lo;

	if (addr < w->stack.lo || size < 8 || at > size - 8)
		return stack_bytes_read(&w->stack, addr, 8, ret) == EXPR_OK;
	memcpy(ret, w->stack.bytes + at, 8);
	if (addr + 8 > w->top)
		w->top = addr + 8;
	return true;
}

/* Returns the address of the instruction that the frame executes next. */
static inline uint64_t walk_next_pc(const struct walk_frame *f)
{
	return f->interrupted ? f->addr - CPU_PC_STEP : f->addr;
}

#endif
