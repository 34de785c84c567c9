#include "lib/unwind/guess/step.h"

#include "lib/unwind/guess/guess.h"

/*
 * Moves f, the leaf or a frame that a signal interrupted. The pc may be at any instruction, also
 * between pushes that the CFI does not describe (hand-written code, gcc -Oz). If the rule finds an
 * address without a mapping, the path of the code is tried.
 */
static enum unwind_end step_from_pc(struct walk *w, struct walk_frame *f, const struct pc_info *p)
{
	const struct frame_regs regs = f->regs;
	const uint32_t signals = f->signals;
	enum unwind_end end = guess_try_rule(w, f, p);

	if (end != UNWIND_END_NO_MAP || f->signals != signals)
		return end;
	f->regs = regs;
	end = guess_by_path(w, f);
	return end == WALK_ON ? end : UNWIND_END_NO_MAP;
}

enum unwind_end step_to_caller(struct walk *w, struct walk_frame *f)
{
	const struct pc_info *p = f->pc_info;

	if (p == NULL || p->addr != walk_lookup(f))
		p = pc_info_at(w->space, walk_lookup(f));
	w->step.is_simple = false;
	/* Clears what another candidate of a search may have set. */
	w->missing = 0;
	w->second = 0;
	f->not_called = false;
	if (p->rule->cfa != RULE_CFA_NONE)
		return f->is_leaf || f->interrupted ? step_from_pc(w, f, p)
						    : guess_try_rule(w, f, p);
	if (pc_info_is_unmapped(p))
		return UNWIND_END_NO_MAP;
	return guess_caller(w, f, p);
}
