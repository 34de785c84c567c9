#include "lib/unwind/walk/search.h"

#include "lib/unwind/cpu.h"
#include "lib/unwind/space/code.h"
#include "lib/unwind/walk/rule_step.h"
#include "lib/unwind/walk/step.h"

#define SP CPU_SP
#define FP CPU_FP

/* Bytes above sp that are searched. Larger frames are rare. */
#define SEARCH_BYTES_MAX (128u * 1024)
/* Candidates from which a walk is tried. */
#define CANDIDATES_MAX 64
/* Steps of the walks from all candidates of one search. */
#define STEPS_MAX 8192
/*
 * The cost of a word that is read, of a step, and of a candidate whose code is read, in units of
 * about 5 ns.
 */
#define COST_WORD      4
#define COST_STEP      8
#define COST_CANDIDATE 64

/* The rating of a candidate. It must reach a good end, or its call must be certain. */
enum {
	CALL_REFUTED = 0,  /* no call ends at the return address */
	CALL_OTHER = 1,	   /* a call to another function, which may have jumped here */
	CALL_POSSIBLE = 2, /* an indirect call, or one through a PLT */
	CALL_CERTAIN = 3,  /* a call to this function, or to one that jumps to it */
	FRAME_FITS = 4,	   /* added: the frame size is that of the code */
	END_CAPPED = 8,	   /* added: the walk reaches the end of the copy */
	END_ROOT = 16,	   /* added: the walk reaches the root */
};

struct search {
	struct walk *w;
	const struct walk_frame *f;
	uint64_t function; /* the start of f's function; 0: unknown */
	/*
	 * The frame pointer by the code's frame size, if the frame does not vary; otherwise 0. It
	 * is never below lowest.
	 */
	uint64_t fitting;
	uint64_t lowest;
	size_t steps;
	size_t candidates;
	uint64_t best;
	int best_score;
};

static int rate_call(struct search *s, uint64_t ra)
{
	uint64_t target = 0;

	switch (code_call_before(s->w->space, ra, &target)) {
	case CODE_CALL_NONE:
		return CALL_REFUTED;
	case CODE_CALL_NORETURN: /* the root of a coroutine */
	case CODE_CALL_UNKNOWN:	 /* code generated at run time may call anything */
	case CODE_CALL_INDIRECT:
		return CALL_POSSIBLE;
	case CODE_CALL_DIRECT:
		break;
	}
	if (s->function != 0 && target == s->function)
		return CALL_CERTAIN;
	if (s->function != 0 && code_jumps_to(s->w->space, target, s->function))
		return CALL_CERTAIN;
	/* A stub of a PLT leads anywhere. Its CFI is a full rule. */
	if (pc_info_at(s->w->space, target)->rule->cfa == RULE_CFA_FULL)
		return CALL_POSSIBLE;
	/*
	 * With -fcf-protection stubs are in .plt.sec, with simple rules. They rarely lead back to
	 * a function of the same file.
	 */
	if (s->function != 0 && !pc_info_same_image(s->w->space, target, s->function))
		return CALL_POSSIBLE;
	return CALL_OTHER;
}

/* Adds n to the cost of the walk. Returns false if the limit is reached. */
static bool spend(struct search *s, uint32_t n)
{
	const bool is_over = n > WALK_GUESS_COST_MAX - s->w->guess_cost;

	s->w->guess_cost = is_over ? WALK_GUESS_COST_MAX : s->w->guess_cost + n;
	return !is_over;
}

/* Rates the end of the walk from f, which does not search again. */
static int rate_end(struct search *s, struct walk_frame f)
{
	while (s->steps++ < STEPS_MAX && spend(s, COST_STEP)) {
		enum unwind_end end = step_to_caller(s->w, &f);

		if (end == UNWIND_END_ROOT)
			return END_ROOT;
		/* The interrupted code may be on a stack that was not copied yet. */
		if (end == UNWIND_END_CAPPED || (end == UNWIND_END_UNREADABLE && f.signals > 0))
			return END_CAPPED;
		if (end != WALK_ON)
			return 0;
	}
	return 0;
}

static void rate_candidate(struct search *s, uint64_t fp)
{
	struct walk_frame f = *s->f;
	int score;

	if (!spend(s, COST_CANDIDATE))
		return;
	f.regs.r[FP] = fp;
	f.regs.known |= UINT64_C(1) << FP;
	if (step_to_caller(s->w, &f) != WALK_ON)
		return;
	/* The caller's frame pointer must be above this one, 0, or below sp. */
	if (f.regs.known >> FP & 1 && f.regs.r[FP] != 0 && s->f->regs.r[SP] < f.regs.r[FP] &&
	    f.regs.r[FP] <= fp)
		return;
	score = rate_call(s, f.addr);
	if (score == CALL_REFUTED)
		return;
	s->candidates++;
	score += rate_end(s, f);
	if (fp == s->fitting)
		score += FRAME_FITS;
	/* Of equal candidates the lowest wins: pairs of outer frames always look good. */
	if (score > s->best_score) {
		s->best_score = score;
		s->best = fp;
	}
}

static bool is_good_enough(int score)
{
	return (score & (END_ROOT | END_CAPPED)) != 0 || (score & ~FRAME_FITS) == CALL_CERTAIN;
}

/*
 * Sets *ret to the offset of the return address from fp by this rule, for a cheap check before a
 * step. Returns false if it does not depend on fp.
 */
static bool return_address_offset(const struct rule *rule, int64_t *ret)
{
	if (rule->cfa == RULE_CFA_FP)
		*ret = (int64_t)rule->cfa_offset + rule->ra_offset;
	else if (rule->cfa == RULE_CFA_NONE)
		*ret = 8;
	else
		return false;
	return true;
}

static void find_function(struct search *s, uint64_t lookup)
{
	const struct pc_info *p = pc_info_at(s->w->space, lookup);
	uint32_t budget;
	uint64_t vaddr;
	uint32_t size;

	if (!p->image || !rows_function(p->rows, lookup - p->bias, &vaddr))
		return;
	s->function = vaddr + p->bias;
	if (!code_frame_size(s->w->space, s->function, &size))
		return;
	s->lowest = s->f->regs.r[SP] + size;
	budget = WALK_GUESS_COST_MAX - s->w->guess_cost;
	if (!code_frame_varies(s->w->space, s->function, &budget))
		s->fitting = s->lowest;
	s->w->guess_cost = WALK_GUESS_COST_MAX - budget;
}

bool search_frame_pointer(struct walk *w, struct walk_frame *f)
{
	struct search s = {.w = w, .f = f};
	uint64_t lookup = walk_lookup(f);
	uint64_t sp = f->regs.r[SP];
	const struct rule *rule;
	uint64_t top = w->top;
	uint64_t fp = (sp + 7) & ~UINT64_C(7);
	uint64_t end = w->stack.hi;
	int64_t offset;
	bool has_offset;

	if (f->regs.known >> FP & 1 || sp < w->stack.lo || sp > w->stack.hi)
		return false;
	rule = pc_info_at(w->space, lookup)->rule;
	has_offset = return_address_offset(rule, &offset);
	find_function(&s, lookup);
	if (s.lowest > fp)
		fp = (s.lowest + 7) & ~UINT64_C(7);
	if (fp >= end)
		return false;
	if (end - fp > SEARCH_BYTES_MAX)
		end = fp + SEARCH_BYTES_MAX;
	for (; fp < end && s.candidates < CANDIDATES_MAX && s.steps < STEPS_MAX &&
	       spend(&s, COST_WORD);
	     fp += 8) {
		uint64_t ra;

		if (has_offset && (stack_bytes_read(&w->stack, fp + (uint64_t)offset, 8, &ra) ||
				   !unwind_space_covers(w->space, cpu_return_address(ra) - 1)))
			continue;
		rate_candidate(&s, fp);
		if (s.best_score == CALL_CERTAIN + FRAME_FITS + END_ROOT)
			break;
	}
	/* Bytes that only candidates read do not count as needed. */
	w->top = top;
	if (!is_good_enough(s.best_score))
		return false;
	f->regs.r[FP] = s.best;
	f->regs.known |= UINT64_C(1) << FP;
	return true;
}
