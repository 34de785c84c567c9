#include "lib/unwind/walk.h"

#include <string.h>

#include "lib/unwind/arch_x86_64.h"
#include "lib/unwind/code.h"

#define SP X86_64_RSP
#define FP X86_64_RBP
#define PC X86_64_RIP

#define BIT(n) (UINT64_C(1) << (n))

/*
 * A signal frame may lead to lower addresses (another stack), so progress is
 * not shown by addresses there. Handlers interrupted by signals nest a few
 * deep; more than this goes round in circles.
 */
#define SIGNALS_MAX 64

/* Code of a C library's entry that has no CFI (musl): _start and its C part. */
#define ENTRY_SIZE 64

/* Could not read n bytes at addr: whose fault is it? */
static enum unwind_end unreadable(struct walk *w, const struct walk_frame *f,
				  uint64_t addr, size_t n)
{
	uint64_t sum;

	/* What a signal interrupted may have another stack: none was copied. */
	if (f->signals > 0 &&
	    (f->regs.r[SP] < w->stack.lo || f->regs.r[SP] > w->stack.hi))
		return UNWIND_END_UNREADABLE;
	if (addr < w->stack.lo || __builtin_add_overflow(addr, n, &sum))
		return UNWIND_END_BAD_CFA;
	if (sum - w->stack.hi > SAMPLE_STACK_MAX)
		return UNWIND_END_BAD_CFA;
	w->missing = sum;
	return w->capped ? UNWIND_END_CAPPED : UNWIND_END_UNREADABLE;
}

static inline bool read_word(struct walk *w, uint64_t addr, uint64_t *ret)
{
	uint64_t at = addr - w->stack.lo;
	uint64_t size = w->stack.hi - w->stack.lo;

	if (addr < w->stack.lo || size < 8 || at > size - 8)
		return false;
	memcpy(ret, w->stack.bytes + at, 8);
	if (addr + 8 > w->top)
		w->top = addr + 8;
	return true;
}

/* To the caller whose return address is ra; its registers are in place. */
static enum unwind_end enter(struct walk *w, struct walk_frame *f, uint64_t ra,
			     bool by_heuristic)
{
	/* The ABI's mark of the outermost frame, and musl's. */
	if (ra == 0) {
		w->step.usual = false;
		return UNWIND_END_ROOT;
	}
	f->place = space_place(w->space, ra - 1);
	if (space_unmapped(f->place))
		return UNWIND_END_NO_MAP;
	f->addr = ra;
	f->is_leaf = false;
	f->by_heuristic = by_heuristic;
	f->interrupted = false;
	return WALK_ON;
}

/* To the frame that a signal interrupted: its pc is no return address. */
static enum unwind_end enter_interrupted(struct walk *w, struct walk_frame *f)
{
	uint64_t pc = f->regs.r[PC];
	enum unwind_end end;

	if (++f->signals > SIGNALS_MAX)
		return UNWIND_END_CYCLE;
	end = enter(w, f, pc + (pc != 0 ? X86_64_PC_STEP : 0), false);
	f->interrupted = end == WALK_ON;
	return end;
}

/* The callee-saved registers beside fp that the caller had. */
static uint64_t restore_saved(struct walk *w, struct walk_frame *f,
			      const struct rule *rule, uint64_t cfa)
{
	static const uint8_t regs[RULE_SAVED_N] = {
		X86_64_RBX, X86_64_R12, X86_64_R12 + 1, X86_64_R12 + 2,
		X86_64_R12 + 3};
	uint64_t known = 0;

	for (size_t i = 0; i < RULE_SAVED_N; i++) {
		uint64_t bit = BIT(regs[i]);

		if (rule->saved[i] == RULE_SAVED_SAME)
			known |= f->regs.known & bit;
		else if (rule->saved[i] != RULE_SAVED_UNDEFINED &&
			 read_word(w, cfa - 8u * rule->saved[i],
				   &f->regs.r[regs[i]]))
			known |= bit;
	}
	return known;
}

static enum unwind_end step_simple(struct walk *w, struct walk_frame *f,
				   const struct rule *rule, struct image *image)
{
	struct walk_step *step = &w->step;
	uint64_t *r = f->regs.r;
	uint64_t known = BIT(SP) | BIT(PC) | (f->regs.known & BIT(FP));
	uint64_t cfa = r[SP];
	uint64_t fp = r[FP];
	uint64_t ra;

	*step = (struct walk_step){
		.usual = !w->all_saved,
		.fp_read = rule->fp == RULE_FP_SAVED,
		.ra_at = rule->ra_offset,
		.fp_at = rule->fp_offset,
		.image = image,
	};
	if (rule->ra == RULE_RA_UNDEFINED)
		return UNWIND_END_ROOT;
	if (rule->cfa == RULE_CFA_FP) {
		if (!(known & BIT(FP)))
			return UNWIND_END_UNKNOWN_REGISTER;
		cfa = r[FP];
	}
	cfa += (uint64_t)(int64_t)rule->cfa_offset;
	/* A caller's frame lies above; the ABI aligns it. */
	if (cfa <= r[SP] || cfa % 8 != 0)
		return UNWIND_END_BAD_CFA;
	if (!read_word(w, cfa + (uint64_t)(int64_t)rule->ra_offset, &ra))
		return unreadable(w, f,
				  cfa + (uint64_t)(int64_t)rule->ra_offset, 8);
	if (rule->fp == RULE_FP_SAVED) {
		uint64_t at = cfa + (uint64_t)(int64_t)rule->fp_offset;

		if (!read_word(w, at, &fp))
			return unreadable(w, f, at, 8);
		known |= BIT(FP);
	} else if (rule->fp == RULE_FP_UNDEFINED) {
		known &= ~BIT(FP);
	}
	if (w->all_saved)
		known |= restore_saved(w, f, rule, cfa);
	r[SP] = cfa;
	r[FP] = fp;
	r[PC] = ra;
	f->regs.known = known;
	return enter(w, f, ra, false);
}

static enum unwind_end end_of_expr(struct walk *w, const struct walk_frame *f,
				   enum expr_result result)
{
	switch (result) {
	case EXPR_OK:
		return WALK_ON;
	case EXPR_UNKNOWN_REGISTER:
		return UNWIND_END_UNKNOWN_REGISTER;
	case EXPR_UNREADABLE:
		return unreadable(w, f, w->missing, 8);
	case EXPR_INVALID:
		return UNWIND_END_BAD_CFA;
	}
	return UNWIND_END_BAD_CFA;
}

/* A register of the caller by a full rule. */
static enum expr_result restore(struct walk *w, const struct rows *rows,
				const struct frame_regs *regs, uint64_t cfa,
				const struct reg_rule *rule, unsigned int reg,
				uint64_t *ret)
{
	uint64_t value = cfa + (uint64_t)(int64_t)rule->value;
	unsigned int from = reg;
	enum expr_result r;

	switch ((enum reg_kind)rule->kind) {
	case REG_UNDEFINED:
		return EXPR_UNKNOWN_REGISTER;
	case REG_REGISTER:
		from = (unsigned int)rule->value;
		__attribute__((fallthrough));
	case REG_SAME:
		if (!(regs->known & BIT(from)))
			return EXPR_UNKNOWN_REGISTER;
		*ret = regs->r[from];
		return EXPR_OK;
	case REG_CFA:
		*ret = value;
		return EXPR_OK;
	case REG_SAVED:
		break;
	case REG_SAVED_EXPR:
	case REG_EXPR:
		r = expr_eval(rows->ops + rule->ops, rule->n_ops, regs,
			      &w->stack, cfa, &w->top, &w->missing, &value);
		if (r)
			return r;
		if (rule->kind == REG_SAVED_EXPR)
			break;
		*ret = value;
		return EXPR_OK;
	}
	if (read_word(w, value, ret))
		return EXPR_OK;
	w->missing = value;
	return EXPR_UNREADABLE;
}

static enum unwind_end step_full(struct walk *w, struct walk_frame *f,
				 const struct rows *rows,
				 const struct full_rule *full)
{
	/* The pc that expressions see is the one that the rule was found by. */
	struct frame_regs old = f->regs;
	struct frame_regs new = {0};
	uint64_t sp = old.r[SP];
	enum expr_result r;
	uint64_t cfa = 0;

	r = expr_eval(rows->ops + full->cfa_ops, full->cfa_n_ops, &old,
		      &w->stack, 0, &w->top, &w->missing, &cfa);
	if (r)
		return end_of_expr(w, f, r);
	for (unsigned int reg = 0; reg < X86_64_N_REGS; reg++) {
		r = restore(w, rows, &old, cfa, &full->regs[reg], reg,
			    &new.r[reg]);
		if (r == EXPR_OK)
			new.known |= BIT(reg);
		else if (reg == PC)
			return end_of_expr(w, f, r);
	}
	/* The caller's stack pointer is the CFA unless a rule says more. */
	if (full->regs[SP].kind == REG_SAME || !(new.known &BIT(SP))) {
		new.r[SP] = cfa;
		new.known |= BIT(SP);
	}
	/*
	 * In longjmp(3) the CFA is no place on the stack, but that is; and its
	 * last instructions have set it already.
	 */
	if (!full->is_signal &&
	    (new.r[SP] < sp || (new.r[SP] == sp && !f->is_leaf) ||
	     new.r[SP] % 8 != 0))
		return UNWIND_END_BAD_CFA;
	f->regs = new;
	if (!full->is_signal)
		return enter(w, f, new.r[PC], false);
	return enter_interrupted(w, f);
}

/* What the kernel put on the stack for a handler; sp is behind its address. */
static enum unwind_end step_sigreturn(struct walk *w, struct walk_frame *f)
{
	uint64_t sp = f->regs.r[SP];

	for (unsigned int reg = 0; reg < X86_64_N_REGS; reg++) {
		uint64_t at = sp + x86_64_sigframe_offset(reg);

		if (!read_word(w, at, &f->regs.r[reg]))
			return unreadable(w, f, at, 8);
	}
	f->regs.known = BIT(X86_64_N_REGS) - 1;
	return enter_interrupted(w, f);
}

/*
 * Without CFI: a frame pointer, if that is what the register holds. It points
 * to the saved one of the caller, above which is the return address.
 */
static enum unwind_end step_frame_pointer(struct walk *w, struct walk_frame *f)
{
	uint64_t *r = f->regs.r;
	uint64_t fp = r[FP];
	uint64_t next;
	uint64_t ra;

	if (!(f->regs.known & BIT(FP)))
		return UNWIND_END_UNKNOWN_REGISTER;
	/* "The deepest frame": psABI, 3.4.1, initial stack and registers. */
	if (fp == 0 && !f->is_leaf)
		return UNWIND_END_ROOT;
	if (fp % 8 != 0 || fp < r[SP] || !read_word(w, fp, &next) ||
	    !read_word(w, fp + 8, &ra))
		return UNWIND_END_NO_CFI;
	if (ra != 0 && !unwind_space_covers(w->space, ra - 1))
		return UNWIND_END_NO_CFI;
	/* To a caller without frame pointers that one may be anything. */
	if (next != 0 && next <= fp &&
	    !code_may_call(w->space, ra, walk_lookup(f), CODE_FRAMED_MAX))
		return UNWIND_END_NO_CFI;
	r[SP] = fp + 16;
	r[FP] = next;
	r[PC] = ra;
	f->regs.known = BIT(SP) | BIT(PC) | BIT(FP);
	return enter(w, f, ra, true);
}

/* In a stub that has only been jumped to: the return address is on top. */
static enum unwind_end step_stub(struct walk *w, struct walk_frame *f)
{
	static const struct rule rule = {
		.cfa = RULE_CFA_SP, .cfa_offset = 8, .ra_offset = -8};
	enum unwind_end end = step_simple(w, f, &rule, NULL);

	w->step.usual = false;
	if (end == WALK_ON)
		f->by_heuristic = true;
	return end;
}

/* Nothing has been pushed since the call: its return address is on top. */
static bool is_just_called(struct walk *w, const struct walk_frame *f)
{
	uint64_t ra;

	return read_word(w, f->regs.r[SP], &ra) &&
	       code_may_call(w->space, ra, walk_lookup(f), CODE_LEAF_MAX);
}

/* By the rule of p, if it is one. */
static enum unwind_end step_by_rule(struct walk *w, struct walk_frame *f,
				    const struct place *p)
{
	const struct rule *rule = p->rule;
	const struct full_rule *full;
	enum unwind_end end;

	if (rule->cfa != RULE_CFA_FULL)
		return step_simple(w, f, rule, p->image);
	full = &p->rows->full[rule->cfa_offset];
	end = step_full(w, f, p->rows, full);
	/* Where what was interrupted cannot be read, too. */
	if (end != WALK_ON && full->is_signal)
		f->planted = !f->is_leaf;
	return end;
}

/*
 * A return address that no call has left: somebody put the start of a function
 * there, to be returned to (makecontext(3) does). No rule is in front of it.
 */
static bool is_planted(const struct walk_frame *f, const struct place *p)
{
	uint64_t start;

	return !f->is_leaf && !f->interrupted &&
	       rows_function(p->rows, f->addr - p->bias, &start) &&
	       start == f->addr - p->bias;
}

static enum unwind_end step_without_cfi(struct walk *w, struct walk_frame *f,
					const struct place *p)
{
	const struct image *i = p->image;
	enum unwind_end end;
	uint64_t entry;

	if (i) {
		entry = i->entry + p->bias;
		if (f->addr >= entry && f->addr - entry < ENTRY_SIZE)
			return UNWIND_END_ROOT;
		if (!f->is_leaf && code_is_sigreturn(w->space, f->addr)) {
			end = step_sigreturn(w, f);
			f->planted = end != WALK_ON;
			return end;
		}
		if (is_planted(f, p)) {
			end = step_by_rule(w, f,
					   space_place(w->space, f->addr));
			f->planted = !f->interrupted;
			/* Where it would return to is no address: an argument.
			 */
			if (end == UNWIND_END_NO_MAP)
				end = UNWIND_END_ROOT;
			w->step.usual = false;
			return end;
		}
		if ((f->is_leaf || f->interrupted) &&
		    (code_is_stub(w->space, walk_lookup(f)) ||
		     is_just_called(w, f)))
			return step_stub(w, f);
	}
	return step_frame_pointer(w, f);
}

enum unwind_end walk_step(struct walk *w, struct walk_frame *f)
{
	const struct place *p = f->place;

	if (p == NULL || p->addr != walk_lookup(f))
		p = space_place(w->space, walk_lookup(f));
	w->step.usual = false;
	f->planted = false;
	if (p->rule->cfa != RULE_CFA_NONE)
		return step_by_rule(w, f, p);
	if (space_unmapped(p))
		return UNWIND_END_NO_MAP;
	return step_without_cfi(w, f, p);
}
