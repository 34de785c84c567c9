#include "lib/unwind/walk/walk.h"

#include "lib/unwind/cpu.h"
#include "lib/unwind/walk/memo.h"
#include "lib/unwind/walk/search.h"
#include "lib/unwind/walk/step.h"

static void add_frame(struct unwind_stack *ret, const struct walk_frame *f)
{
	ret->frames[ret->n++] = (struct unwind_frame){
		.addr = f->addr,
		.is_leaf = f->is_leaf,
		.by_heuristic = f->by_heuristic,
	};
	ret->has_heuristic |= f->by_heuristic;
}

void walk_to_end(struct walk *w, struct walk_frame *f, uint32_t tid, size_t max_frames,
		 struct unwind_stack *ret)
{
	/* 20 KiB: too large for the stack. */
	static struct memo_walk memo;
	enum unwind_end end;

	ret->n = 0;
	ret->has_heuristic = false;
	ret->second_from = 0;
	ret->shared_n = 0;
	ret->shared_id = 0;
	memo_begin(&memo, w->all_saved ? NULL : &w->space->memos, tid);
	for (;;) {
		/*
		 * Is addr of this frame a pc? It is noted here, since the step below makes f
		 * the caller. memo_follow() may move f further, but never to a signal's
		 * trampoline, for which is_pc is used.
		 */
		const bool is_pc = walk_addr_is_pc(f);
		bool searched = false;

		add_frame(ret, f);
		if (memo_follow(&memo, w, f, max_frames, ret)) {
			end = UNWIND_END_ROOT;
			break;
		}
		end = step_to_caller(w, f);
		if (end == UNWIND_END_UNKNOWN_REGISTER && search_frame_pointer(w, f)) {
			searched = true;
			end = step_to_caller(w, f);
			w->step.is_simple = false;
		}
		if (end != WALK_ON) {
			/* No call is before addr: the server's subtraction must give addr. */
			if (f->no_call_before) {
				ret->frames[ret->n - 1].addr += CPU_PC_STEP;
				ret->frames[ret->n - 1].by_heuristic = f->by_heuristic;
				ret->has_heuristic |= f->by_heuristic;
			}
			break;
		}
		f->by_heuristic |= searched;
		if (ret->second_from == 0 && f->regs.r[CPU_SP] > w->stack.second_lo &&
		    f->regs.r[CPU_SP] <= w->stack.second_hi)
			ret->second_from = f->regs.r[CPU_SP];
		/*
		 * f was interrupted, so the frame before is a signal's trampoline. No call is
		 * before its address, either, unless the address is a pc: the trampoline is a leaf,
		 * or another signal has interrupted it.
		 */
		if (f->interrupted && !is_pc)
			ret->frames[ret->n - 1].addr += CPU_PC_STEP;
		if (ret->n == max_frames) {
			end = UNWIND_END_MAX_FRAMES;
			break;
		}
	}
	ret->end = end;
	ret->guess_cost += w->guess_cost;
	ret->stack_top = w->top;
	ret->missing = end == UNWIND_END_UNREADABLE || end == UNWIND_END_CAPPED ? w->missing : 0;
	ret->second = end == UNWIND_END_UNREADABLE || end == UNWIND_END_BAD_CFA ? w->second : 0;
	memo_end(&memo, w, ret);
}
