#include "lib/unwind/code.h"
#include "lib/unwind/search.h"
#include "lib/unwind/walk_steps.h"

/*
 * The end of swapcontext(3) is on the other stack, whose registers were those
 * of a call of it. Its return address is pushed there again, and until then
 * still in the same place.
 */
static enum unwind_end step_swapped(struct walk *w, struct walk_frame *f)
{
	uint32_t budget = SEARCH_WORK_MAX - w->searched;
	const uint64_t start = code_function(w->space, walk_lookup(f), &budget);
	uint64_t ra;

	w->searched = SEARCH_WORK_MAX - budget;
	if (start == 0 || CPU_LINK_REGISTER ||
	    !walk_read_word(w, f->regs.r[SP] - 8, &ra) ||
	    !unwind_space_covers(w->space, ra - 1) ||
	    !walk_is_call(w, ra, start))
		return UNWIND_END_NO_MAP;
	f->regs.r[PC] = ra;
	f->regs.known = BIT(SP) | BIT(PC);
	w->step.usual = false;
	return walk_enter(w, f, ra, true);
}

enum unwind_end walk_refuted(struct walk *w, struct walk_frame *f)
{
	/* Pushes that are written by hand, or by gcc for -Oz. */
	const enum unwind_end end = walk_way_back(w, f);

	return end == WALK_ON ? end : step_swapped(w, f);
}
