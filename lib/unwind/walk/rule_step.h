/*
 * Exact steps: from a frame to its caller by an unwind rule, on a copied stack. step.h uses this
 * module if the frame's address has a rule.
 */
#ifndef LIB_UNWIND_WALK_RULE_STEP_H
#define LIB_UNWIND_WALK_RULE_STEP_H

#include "lib/unwind/walk/walk_state.h"

/*
 * Returns the reason for the end of a walk that cannot read n bytes at addr, for the frame f:
 * - UNWIND_END_CAPPED: the bytes are above the copy of f's stack, which a limit has cut off;
 * - UNWIND_END_UNREADABLE: the bytes are above the copy of f's stack, which no limit has cut off;
 *   or the walk has passed a signal frame, and f's stack pointer is outside of the copies: f is on
 *   a stack that was not copied;
 * - UNWIND_END_BAD_CFA: addr is below the copy, or more than SAMPLE_STACK_MAX above its end.
 * Sets w->missing or w->second (unwind.h) if more bytes of a stack would help the next walk.
 */
enum unwind_end walk_unreadable(struct walk *w, const struct walk_frame *f, uint64_t addr,
				size_t n);

/*
 * The functions below move f to its caller and return WALK_ON. If they find no caller, they return
 * another value, the reason. Then addr and is_leaf of f are unchanged, but other members may have
 * changed.
 */

/*
 * Moves f to the caller with the return address ra. f->regs must have the caller's registers.
 * by_heuristic: the value for f->by_heuristic. Returns UNWIND_END_ROOT if ra is 0, and
 * UNWIND_END_NO_MAP if ra is unmapped.
 */
enum unwind_end walk_enter(struct walk *w, struct walk_frame *f, uint64_t ra, bool by_heuristic);

/* Moves f to the frame that a signal interrupted, whose registers f->regs must have. */
enum unwind_end walk_enter_interrupted(struct walk *w, struct walk_frame *f);

/* Moves f by a simple rule. image becomes w->step.image: the image that has the rule, or NULL. */
enum unwind_end walk_by_simple_rule(struct walk *w, struct walk_frame *f, const struct rule *rule,
				    struct image *image);

/* Moves f by the full rule of p: p->rule->cfa is RULE_CFA_FULL. */
enum unwind_end walk_by_full_rule(struct walk *w, struct walk_frame *f, const struct pc_info *p);

/* Moves f by the simple or full rule of p: p->rule->cfa is not RULE_CFA_NONE. */
static inline enum unwind_end walk_by_rule(struct walk *w, struct walk_frame *f,
					   const struct pc_info *p)
{
	if (p->rule->cfa != RULE_CFA_FULL)
		return walk_by_simple_rule(w, f, p->rule, p->image);
	return walk_by_full_rule(w, f, p);
}

#endif
