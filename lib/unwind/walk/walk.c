#include "lib/unwind/walk/walk.h"

#include "lib/unwind/cpu.h"
#include "lib/unwind/walk/memo.h"
#include "lib/unwind/walk/search.h"
#include "lib/unwind/walk/step.h"

static void add_frame(struct unwind_stack *out, const struct walk_frame *f)
{
	out->frames[out->n++] = (struct unwind_frame){
		.addr = f->addr,
		.is_leaf = f->is_leaf,
		.by_heuristic = f->by_heuristic,
	};
	out->has_heuristic |= f->by_heuristic;
}

void walk_to_end(struct walk *w, struct walk_frame *f, uint32_t tid, size_t max_frames,
		 struct unwind_stack *out)
{
	/* 20 KiB: too large for the stack. */
	static struct memo_walk memo;
	enum unwind_end end;

	out->n = 0;
	out->has_heuristic = false;
	out->second_from = 0;
	out->shared_n = 0;
	out->shared_id = 0;
	memo_begin(&memo, w->all_saved ? NULL : &w->space->memos, tid);
	for (;;) {
		bool searched = false;

		add_frame(out, f);
		if (memo_follow(&memo, w, f, max_frames, out)) {
			end = UNWIND_END_ROOT;
			break;
		}
		end = step_to_caller(w, f);
		if (end == UNWIND_END_UNKNOWN_REGISTER && search_frame_pointer(w, f)) {
			searched = true;
			end = step_to_caller(w, f);
			w->step.is_simple = false;
		}
		/* No call is before addr, so the server's subtraction must give addr itself. */
		if (f->not_called) {
			out->frames[out->n - 1].addr += CPU_PC_STEP;
			out->frames[out->n - 1].by_heuristic = f->by_heuristic;
			out->has_heuristic |= f->by_heuristic;
		}
		if (end != WALK_ON)
			break;
		f->by_heuristic |= searched;
		if (out->second_from == 0 && f->regs.r[CPU_SP] > w->stack.second_lo &&
		    f->regs.r[CPU_SP] <= w->stack.second_hi)
			out->second_from = f->regs.r[CPU_SP];
		/* The same for the trampoline. */
		if (f->interrupted && out->n > 1)
			out->frames[out->n - 1].addr += CPU_PC_STEP;
		if (out->n == max_frames) {
			end = UNWIND_END_MAX_FRAMES;
			break;
		}
	}
	out->end = end;
	out->guess_cost += w->guess_cost;
	out->stack_top = w->top;
	out->missing = end == UNWIND_END_UNREADABLE || end == UNWIND_END_CAPPED ? w->missing : 0;
	out->second = end == UNWIND_END_UNREADABLE || end == UNWIND_END_BAD_CFA ? w->second : 0;
	memo_end(&memo, w, out);
}
