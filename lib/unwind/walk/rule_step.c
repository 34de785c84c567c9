#include "lib/unwind/walk/rule_step.h"

#include <dwarf.h>

#include "lib/unwind/cpu.h"

#define SP CPU_SP
#define FP CPU_FP
#define PC CPU_PC
#define RA CPU_RA

#define BIT(n) (UINT64_C(1) << (n))

/*
 * The limit of signal frames. A signal frame may lead to lower addresses (another stack), so
 * ascending addresses cannot prove progress there. Real handlers nest a few deep.
 */
#define SIGNALS_MAX 64

enum unwind_end walk_unreadable(struct walk *w, const struct walk_frame *f, uint64_t addr, size_t n)
{
	const struct stack_bytes *s = &w->stack;
	const uint64_t sp = f->regs.r[SP];
	uint64_t sum;

	w->missing = 0;
	if (sp >= s->second_lo && sp < s->second_hi) {
		if (addr < s->second_lo)
			return UNWIND_END_BAD_CFA;
		return w->second_capped ? UNWIND_END_CAPPED : UNWIND_END_UNREADABLE;
	}
	/* An interrupted frame may be on another stack. */
	if (f->signals > 0 && (sp < s->lo || sp > s->hi)) {
		w->second = sp - min_u64(sp, UNWIND_RED_ZONE_MAX);
		return UNWIND_END_UNREADABLE;
	}
	if (addr < s->lo || __builtin_add_overflow(addr, n, &sum) ||
	    sum - s->hi > SAMPLE_STACK_MAX) {
		/*
		 * Code may switch stacks by itself, too. Other saved registers are just below the
		 * return address.
		 */
		w->second = addr - min_u64(addr, UNWIND_RED_ZONE_MAX);
		return UNWIND_END_BAD_CFA;
	}
	w->missing = sum;
	return w->capped ? UNWIND_END_CAPPED : UNWIND_END_UNREADABLE;
}

enum unwind_end walk_enter(struct walk *w, struct walk_frame *f, uint64_t ra, bool by_heuristic)
{
	/* Return address 0 marks the outermost frame, by the ABI and in musl. */
	if (ra == 0) {
		w->step.is_simple = false;
		return UNWIND_END_ROOT;
	}
	f->pc_info = pc_info_at(w->space, ra - 1);
	if (pc_info_is_unmapped(f->pc_info))
		return UNWIND_END_NO_MAP;
	f->addr = ra;
	f->is_leaf = false;
	f->by_heuristic = by_heuristic;
	f->interrupted = false;
	f->sp_is_minimum = false;
	return WALK_ON;
}

enum unwind_end walk_enter_interrupted(struct walk *w, struct walk_frame *f)
{
	uint64_t pc = f->regs.r[PC];
	enum unwind_end end;

	if (++f->signals > SIGNALS_MAX)
		return UNWIND_END_SIGNALS;
	end = walk_enter(w, f, pc + (pc != 0 ? CPU_PC_STEP : 0), false);
	f->interrupted = end == WALK_ON;
	return end;
}

/* Restores the callee-saved registers beside fp. Returns those that are known. */
static uint64_t restore_saved(struct walk *w, struct walk_frame *f, const struct rule *rule,
			      uint64_t cfa)
{
	static const uint8_t regs[RULE_SAVED_N] = CPU_SAVED_REGS;
	uint64_t known = 0;

	for (size_t i = 0; i < RULE_SAVED_N; i++) {
		uint64_t bit = BIT(regs[i]);

		if (rule->saved[i] == RULE_SAVED_SAME)
			known |= f->regs.known & bit;
		else if (rule->saved[i] != RULE_SAVED_UNDEFINED &&
			 walk_read_word(w, cfa - 8u * rule->saved[i], &f->regs.r[regs[i]]))
			known |= bit;
	}
	return known;
}

/*
 * Finds the CFA by the frame pointer, if sp is a lower bound only (sp_is_minimum). A function that
 * saves the caller's frame pointer then sets its own frame pointer to the address of the saved one.
 * Returns false if the rule saves no frame pointer, or if the frame pointer is unknown or below sp.
 */
static bool cfa_by_record(const struct walk_frame *f, const struct rule *rule, uint64_t *ret)
{
	if (rule->fp != RULE_FP_SAVED || !(f->regs.known & BIT(FP)) ||
	    f->regs.r[FP] < f->regs.r[SP])
		return false;
	*ret = f->regs.r[FP] - (uint64_t)(int64_t)rule->fp_offset;
	return true;
}

enum unwind_end walk_by_simple_rule(struct walk *w, struct walk_frame *f, const struct rule *rule,
				    struct image *image)
{
	struct walk_step *step = &w->step;
	uint64_t *r = f->regs.r;
	uint64_t known = BIT(SP) | BIT(PC) | (f->regs.known & BIT(FP));
	uint64_t cfa = r[SP];
	uint64_t fp = r[FP];
	bool by_heuristic = f->sp_is_minimum && rule->cfa == RULE_CFA_SP;
	const bool is_pc = walk_addr_is_pc(f);
	enum unwind_end end;
	uint64_t ra;

	*step = (struct walk_step){
		.is_simple = !w->all_saved && !f->sp_is_minimum,
		.fp_read = rule->fp == RULE_FP_SAVED,
		.ra_at = rule->ra_offset,
		.fp_at = rule->fp_offset,
		.image = image,
	};
	if (rule->ra == RULE_RA_UNDEFINED)
		return rule->switches_stack ? UNWIND_END_UNREADABLE : UNWIND_END_ROOT;
	if (rule->cfa == RULE_CFA_FP) {
		if (!(known & BIT(FP)))
			return UNWIND_END_UNKNOWN_REGISTER;
		cfa = r[FP];
	}
	cfa += (uint64_t)(int64_t)rule->cfa_offset;
	if (by_heuristic && !cfa_by_record(f, rule, &cfa))
		return UNWIND_END_NO_CFI;
	/*
	 * The caller's frame is above, and the ABI aligns it. The CFA is sp itself only before the
	 * return address is stored, or after it has been popped, to jump or to push it again. Where
	 * code switches stacks, the caller is on a stack that was not copied.
	 */
	if (cfa < r[SP] || (cfa == r[SP] && rule->ra != RULE_RA_SAME && !is_pc) || cfa % 8 != 0)
		return rule->switches_stack ? UNWIND_END_UNREADABLE : UNWIND_END_BAD_CFA;
	if (rule->ra == RULE_RA_SAME) {
		/* Known of the leaf and of an interrupted frame. */
		if (!(f->regs.known & BIT(RA)))
			return UNWIND_END_UNKNOWN_REGISTER;
		ra = r[RA];
		step->is_simple = false;
	} else if (!walk_read_word(w, cfa + (uint64_t)(int64_t)rule->ra_offset, &ra)) {
		end = walk_unreadable(w, f, cfa + (uint64_t)(int64_t)rule->ra_offset, 8);
		return rule->switches_stack ? UNWIND_END_UNREADABLE : end;
	}
	ra = cpu_return_address(ra);
	if (rule->fp == RULE_FP_SAVED) {
		uint64_t at = cfa + (uint64_t)(int64_t)rule->fp_offset;

		if (!walk_read_word(w, at, &fp))
			return walk_unreadable(w, f, at, 8);
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
	return walk_enter(w, f, ra, by_heuristic);
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
		return walk_unreadable(w, f, w->missing, 8);
	case EXPR_INVALID:
		return UNWIND_END_BAD_CFA;
	}
	return UNWIND_END_BAD_CFA;
}

/* Restores one register of the caller by a full rule. */
static enum expr_result restore(struct walk *w, const struct rows *rows,
				const struct frame_regs *regs, uint64_t cfa,
				const struct reg_rule *rule, unsigned int reg, uint64_t *ret)
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
		r = expr_eval(rows->ops + rule->ops, rule->n_ops, regs, &w->stack, cfa, &w->top,
			      &w->missing, &value);
		if (r)
			return r;
		if (rule->kind == REG_SAVED_EXPR)
			break;
		*ret = value;
		return EXPR_OK;
	}
	if (walk_read_word(w, value, ret))
		return EXPR_OK;
	w->missing = value;
	return EXPR_UNREADABLE;
}

/*
 * Returns true if a function that aligns its stack has already restored the caller's registers. gcc
 * says that the caller's fp is where fp points to, up to the end of the function. But before "lea
 * -8(%r10),%rsp; ret" fp is restored, and points outside of the frame.
 */
static bool has_restored(const struct rows *rows, const struct full_rule *full,
			 const struct frame_regs *regs, uint64_t cfa)
{
	const struct reg_rule *rule = &full->regs[FP];
	const struct expr_op *op;

	if (rule->kind != REG_SAVED_EXPR || rule->n_ops != 2 || !(regs->known & BIT(FP)))
		return false;
	/* The expression begins with the CFA, which it does not use. */
	op = &rows->ops[rule->ops + 1];
	return op->op == DW_OP_bregx && op->reg == FP && op->value == 0 &&
	       (regs->r[FP] < regs->r[SP] || regs->r[FP] >= cfa);
}

static enum unwind_end step_full(struct walk *w, struct walk_frame *f, const struct rows *rows,
				 const struct full_rule *full)
{
	static const struct reg_rule same = {.kind = REG_SAME};
	/* Expressions see the pc by which the rule was found. */
	struct frame_regs old = f->regs;
	struct frame_regs new = {0};
	uint64_t sp = old.r[SP];
	enum expr_result r;
	uint64_t cfa = 0;
	bool restored;

	r = expr_eval(rows->ops + full->cfa_ops, full->cfa_n_ops, &old, &w->stack, 0, &w->top,
		      &w->missing, &cfa);
	if (r)
		return end_of_expr(w, f, r);
	restored = has_restored(rows, full, &old, cfa);
	for (unsigned int reg = 0; reg < CPU_DWARF_REGS; reg++) {
		const struct reg_rule *rule = &full->regs[reg];

		if (restored && rule->kind == REG_SAVED_EXPR)
			rule = &same;
		r = restore(w, rows, &old, cfa, rule, reg, &new.r[reg]);
		if (r == EXPR_OK)
			new.known |= BIT(reg);
		else if (reg == RA)
			return end_of_expr(w, f, r);
	}
	/* The caller's sp is the CFA unless a rule says otherwise. */
	if (full->regs[SP].kind == REG_SAME || !(new.known &BIT(SP))) {
		new.r[SP] = cfa;
		new.known |= BIT(SP);
	}
	new.r[PC] = cpu_return_address(new.r[RA]);
	new.known |= BIT(PC);
	if (CPU_LINK_REGISTER && !full->is_signal)
		new.known &= ~BIT(RA);
	/*
	 * In longjmp(3) the CFA is no stack address, but the restored sp is one, and the last
	 * instructions have already set it.
	 */
	if (!full->is_signal &&
	    (new.r[SP] < sp || (new.r[SP] == sp && !f->is_leaf && !f->interrupted) ||
	     new.r[SP] % 8 != 0))
		return UNWIND_END_BAD_CFA;
	f->regs = new;
	if (!full->is_signal)
		return walk_enter(w, f, new.r[PC], false);
	return walk_enter_interrupted(w, f);
}

enum unwind_end walk_by_full_rule(struct walk *w, struct walk_frame *f, const struct pc_info *p)
{
	const struct full_rule *full = &p->rows->full[p->rule->cfa_offset];
	const bool is_pc = walk_addr_is_pc(f);
	const enum unwind_end end = step_full(w, f, p->rows, full);

	/* Also if the interrupted frame cannot be read. */
	if (end != WALK_ON && full->is_signal)
		f->no_call_before = !is_pc;
	return end;
}
