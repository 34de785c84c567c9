#include "lib/unwind/dwarf/cfi_rule.h"

#include <dwarf.h>
#include <string.h>

#include "lib/unwind/cpu.h"

/* libdw's operation in our form. False if there is none. */
static bool translate_op(const Dwarf_Op *op, struct expr_op *ret)
{
	uint8_t atom = op->atom;

	memset(ret, 0, sizeof(*ret));
	if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31) {
		ret->op = DW_OP_consts;
		ret->value = atom - DW_OP_lit0;
		return true;
	}
	if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31) {
		ret->op = DW_OP_bregx;
		ret->reg = (uint16_t)(atom - DW_OP_breg0);
		ret->value = (int64_t)op->number;
		return true;
	}
	ret->op = atom;
	ret->value = (int64_t)op->number;
	switch (atom) {
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_const4u:
	case DW_OP_const4s:
	case DW_OP_const8u:
	case DW_OP_const8s:
	case DW_OP_constu:
	case DW_OP_consts:
		ret->op = DW_OP_consts;
		return true;
	case DW_OP_bregx:
		if (op->number >= SAMPLE_REGS_MAX)
			return false;
		ret->reg = (uint16_t)op->number;
		ret->value = (int64_t)op->number2;
		return true;
	case DW_OP_deref:
		ret->op = DW_OP_deref_size;
		ret->value = 8;
		return true;
	case DW_OP_over:
		ret->op = DW_OP_pick;
		ret->value = 1;
		return true;
	case DW_OP_pick:
	case DW_OP_deref_size:
	case DW_OP_plus_uconst:
		return true;
	}
	ret->value = 0;
	return expr_op_known(atom);
}

static int translate(struct rows_builder *b, const Dwarf_Op *ops, size_t n, uint32_t *ret_ops,
		     uint16_t *ret_n)
{
	struct expr_op out[EXPR_OPS_MAX];

	if (n == 0 || n > EXPR_OPS_MAX)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (!translate_op(&ops[i], &out[i]))
			return -EINVAL;
	}
	*ret_n = (uint16_t)n;
	return rows_add_ops(b, out, n, ret_ops);
}

static bool fits(Dwarf_Word number, int32_t *ret)
{
	int64_t value = (int64_t)number;

	if (value < INT32_MIN || value > INT32_MAX)
		return false;
	*ret = (int32_t)value;
	return true;
}

/*
 * What the ABI says of registers that the CFI does not mention: callee-saved
 * ones are as they were, others lost. libdw 0.188 has rax for rbx there
 * (backends/x86_64_cfi.c); that a program says so itself is not seen.
 */
static void apply_abi(int reg, struct reg_rule *rule)
{
	bool callee_saved = (CPU_CALLEE_SAVED >> reg & 1) != 0;
	bool is_link = CPU_LINK_REGISTER && reg == CPU_RA;

	if (callee_saved && reg != CPU_FP && rule->kind == REG_UNDEFINED)
		rule->kind = REG_SAME;
	if (!callee_saved && !is_link && rule->kind == REG_SAME)
		rule->kind = REG_UNDEFINED;
}

/* The rule of one register. Returns 0, -EINVAL if it cannot be said. */
static int read_register(struct rows_builder *b, Dwarf_Frame *frame, int reg, struct reg_rule *ret)
{
	Dwarf_Op mem[3];
	Dwarf_Op *ops = mem;
	size_t n = 0;
	bool is_value;

	memset(ret, 0, sizeof(*ret));
	if (dwarf_frame_register(frame, reg, mem, &ops, &n))
		return -EINVAL;
	if (n == 0) {
		ret->kind = ops ? REG_UNDEFINED : REG_SAME;
		return 0;
	}
	is_value = ops[n - 1].atom == DW_OP_stack_value;
	n -= is_value;
	if (n == 1 && ops[0].atom == DW_OP_regx && ops[0].number < SAMPLE_REGS_MAX) {
		ret->kind = REG_REGISTER;
		ret->value = (int32_t)ops[0].number;
		return 0;
	}
	if (n >= 1 && n <= 2 && ops[0].atom == DW_OP_call_frame_cfa &&
	    (n == 1 || (ops[1].atom == DW_OP_plus_uconst && fits(ops[1].number, &ret->value)))) {
		ret->kind = is_value ? REG_CFA : REG_SAVED;
		return 0;
	}
	ret->kind = is_value ? REG_EXPR : REG_SAVED_EXPR;
	return translate(b, ops, n, &ret->ops, &ret->n_ops);
}

/*
 * A function saves what a call returns its result in, rax, if it ends by
 * __builtin_eh_return, and no other one does.
 */
static bool saves_result(const struct reg_rule *first)
{
	return !CPU_LINK_REGISTER && first->kind == REG_SAVED;
}

/* The same of a usual rule: such a function saves all other ones, too. */
static bool ends_by_eh_return(struct rows_builder *b, Dwarf_Frame *frame, const struct rule *rule)
{
	struct reg_rule first;

	for (size_t i = 0; i < RULE_SAVED_N; i++)
		if (rule->saved[i] == RULE_SAVED_SAME || rule->saved[i] == RULE_SAVED_UNDEFINED)
			return false;
	return read_register(b, frame, 0, &first) == 0 && saves_result(&first);
}

/*
 * Everything by full rule: register by register, CFA by expression. A register
 * whose rule is not understood becomes undefined: the frame needs it or not.
 */
static int read_full(struct rows_builder *b, Dwarf_Frame *frame, bool is_signal,
		     const Dwarf_Op *cfa, size_t n_cfa, struct rule *ret)
{
	struct full_rule full;
	int r;

	memset(&full, 0, sizeof(full));
	full.is_signal = is_signal;
	r = translate(b, cfa, n_cfa, &full.cfa_ops, &full.cfa_n_ops);
	if (r)
		return r;
	for (int reg = 0; reg < CPU_DWARF_REGS; reg++) {
		r = read_register(b, frame, reg, &full.regs[reg]);
		if (r == -ENOMEM)
			return r;
		if (r && reg == CPU_RA)
			return r;
		if (r)
			memset(&full.regs[reg], 0, sizeof(full.regs[reg]));
		else if (!is_signal)
			apply_abi(reg, &full.regs[reg]);
	}
	full.installs = !is_signal && saves_result(&full.regs[0]);
	ret->cfa = RULE_CFA_FULL;
	return rows_add_full(b, &full, &ret->cfa_offset);
}

/* The usual shapes: true if the three rules fit into a struct rule. */
static bool read_simple(const Dwarf_Op *cfa, size_t n_cfa, const struct reg_rule *fp,
			const struct reg_rule *ra, struct rule *ret)
{
	if (n_cfa != 1 || cfa->atom != DW_OP_bregx || !fits(cfa->number2, &ret->cfa_offset))
		return false;
	if (cfa->number == CPU_SP)
		ret->cfa = RULE_CFA_SP;
	else if (cfa->number == CPU_FP)
		ret->cfa = RULE_CFA_FP;
	else
		return false;
	if (fp->kind == REG_SAVED) {
		ret->fp = RULE_FP_SAVED;
		ret->fp_offset = fp->value;
	} else if (fp->kind == REG_SAME) {
		ret->fp = RULE_FP_SAME;
	} else if (fp->kind == REG_UNDEFINED) {
		ret->fp = RULE_FP_UNDEFINED;
	} else {
		return false;
	}
	if (ra->kind == REG_UNDEFINED) {
		ret->ra = RULE_RA_UNDEFINED;
	} else if (ra->kind == REG_SAVED) {
		ret->ra = RULE_RA_SAVED;
		ret->ra_offset = ra->value;
	} else if (CPU_LINK_REGISTER && ra->kind == REG_SAME) {
		ret->ra = RULE_RA_SAME;
	} else {
		return false;
	}
	return true;
}

/* Where the callee-saved registers beside fp are. */
static int read_saved(struct rows_builder *b, Dwarf_Frame *frame, struct rule *ret)
{
	static const int regs[RULE_SAVED_N] = CPU_SAVED_REGS;

	for (size_t i = 0; i < RULE_SAVED_N; i++) {
		struct reg_rule rule;
		int r = read_register(b, frame, regs[i], &rule);

		if (r == -ENOMEM)
			return r;
		ret->saved[i] = RULE_SAVED_UNDEFINED;
		apply_abi(regs[i], &rule);
		if (r == 0 && rule.kind == REG_SAME)
			ret->saved[i] = RULE_SAVED_SAME;
		else if (r == 0 && rule.kind == REG_SAVED && rule.value < 0 &&
			 rule.value % 8 == 0 && rule.value / -8 < RULE_SAVED_UNDEFINED)
			ret->saved[i] = (uint8_t)(rule.value / -8);
	}
	return 0;
}

/* The rule of a row: RULE_CFA_NONE where it is not understood. */
int cfi_read_rule(struct rows_builder *b, Dwarf_Frame *frame, bool is_signal, struct rule *ret)
{
	struct reg_rule fp;
	struct reg_rule ra;
	struct rule rule;
	Dwarf_Op *cfa;
	size_t n_cfa;
	int r;

	memset(ret, 0, sizeof(*ret));
	memset(&rule, 0, sizeof(rule));
	r = read_register(b, frame, CPU_RA, &ra);
	if (r)
		return r == -ENOMEM ? r : 0;
	/* What libdw says where the CFI says nothing: no frame is its caller.
	 */
	if (!CPU_LINK_REGISTER && ra.kind == REG_SAME)
		return 0;
	/* A root: where its CFA would be does not matter. */
	if (ra.kind == REG_UNDEFINED) {
		ret->cfa = RULE_CFA_SP;
		ret->fp = RULE_FP_UNDEFINED;
		ret->ra = RULE_RA_UNDEFINED;
		return 0;
	}
	if (dwarf_frame_cfa(frame, &cfa, &n_cfa) || n_cfa == 0)
		return 0;
	r = read_register(b, frame, CPU_FP, &fp);
	if (r == -ENOMEM)
		return r;
	if (r == 0 && !is_signal && read_simple(cfa, n_cfa, &fp, &ra, &rule)) {
		r = read_saved(b, frame, &rule);
		rule.installs = r == 0 && ends_by_eh_return(b, frame, &rule);
		if (r == 0)
			*ret = rule;
		return r;
	}
	memset(&rule, 0, sizeof(rule));
	r = read_full(b, frame, is_signal, cfa, n_cfa, &rule);
	if (r == 0)
		*ret = rule;
	return r == -ENOMEM ? r : 0;
}
