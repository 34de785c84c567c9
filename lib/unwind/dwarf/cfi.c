#include "lib/unwind/dwarf/cfi.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/unwind/cpu.h"
#include "lib/unwind/dwarf/cfi_source.h"

/* Normalises an operation of libdw. Returns false if expr_eval() does not support it. */
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

static bool fits_simple_rule(Dwarf_Word number, int32_t *ret)
{
	int64_t value = (int64_t)number;

	if (value < INT32_MIN || value > INT32_MAX)
		return false;
	*ret = (int32_t)value;
	return true;
}

/*
 * Applies the ABI to registers that the CFI does not mention: callee-saved ones are unchanged,
 * all others are lost. libdw 0.188 treats rax instead of rbx as callee-saved
 * (backends/x86_64_cfi.c). A program's own rule for such a register cannot be told from libdw's.
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

/* Reads the rule of one register. Returns 0, -ENOMEM, or -EINVAL if it is not supported. */
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
	    (n == 1 ||
	     (ops[1].atom == DW_OP_plus_uconst && fits_simple_rule(ops[1].number, &ret->value)))) {
		ret->kind = is_value ? REG_CFA : REG_SAVED;
		return 0;
	}
	ret->kind = is_value ? REG_EXPR : REG_SAVED_EXPR;
	return translate(b, ops, n, &ret->ops, &ret->n_ops);
}

/*
 * Returns true if the function saves register 0 (rax, which holds a result). Only functions that
 * end with __builtin_eh_return do.
 */
static bool saves_result(const struct reg_rule *first)
{
	return !CPU_LINK_REGISTER && first->kind == REG_SAVED;
}

/*
 * Returns true if a simple rule is of a function that ends with __builtin_eh_return. Such a
 * function also saves all callee-saved registers.
 */
static bool ends_by_eh_return(struct rows_builder *b, Dwarf_Frame *frame, const struct rule *rule)
{
	struct reg_rule first;

	for (size_t i = 0; i < RULE_SAVED_N; i++)
		if (rule->saved[i] == RULE_SAVED_SAME || rule->saved[i] == RULE_SAVED_UNDEFINED)
			return false;
	return read_register(b, frame, 0, &first) == 0 && saves_result(&first);
}

/*
 * Makes a full rule: the CFA by an expression, and each register by its own rule. A register
 * whose rule is not supported becomes undefined, since the walk may not need it.
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
	full.may_install_handler = !is_signal && saves_result(&full.regs[0]);
	ret->cfa = RULE_CFA_FULL;
	return rows_add_full(b, &full, &ret->cfa_offset);
}

/* Returns true if the rules of CFA, fp and return address fit into a simple rule. */
static bool read_simple(const Dwarf_Op *cfa, size_t n_cfa, const struct reg_rule *fp,
			const struct reg_rule *ra, struct rule *ret)
{
	if (n_cfa != 1 || cfa->atom != DW_OP_bregx ||
	    !fits_simple_rule(cfa->number2, &ret->cfa_offset))
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

/* Sets rule.saved: where the other callee-saved registers are. */
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

/*
 * In the CFI of glibc's lazy binding on aarch64 (_dl_runtime_resolve) the CFA lies below the two
 * words that the first entry of the PLT has pushed, the return address among them.
 */
#define PUSHED_BY_PLT 16

static void correct_lazy_binding(struct rule *rule)
{
	if (!CPU_LINK_REGISTER || rule->ra != RULE_RA_SAVED || rule->ra_offset != PUSHED_BY_PLT - 8)
		return;
	/* Made-up CFI. */
	if (rule->cfa_offset > INT32_MAX - PUSHED_BY_PLT ||
	    rule->fp_offset < INT32_MIN + PUSHED_BY_PLT)
		return;
	rule->cfa_offset += PUSHED_BY_PLT;
	rule->ra_offset -= PUSHED_BY_PLT;
	if (rule->fp == RULE_FP_SAVED)
		rule->fp_offset -= PUSHED_BY_PLT;
	for (size_t i = 0; i < RULE_SAVED_N; i++)
		if (rule->saved[i] != RULE_SAVED_SAME)
			rule->saved[i] = RULE_SAVED_UNDEFINED;
}

/* Makes the rule of a row. RULE_CFA_NONE if it is not supported. Returns 0 or -ENOMEM. */
static int read_rule(struct rows_builder *b, Dwarf_Frame *frame, bool is_signal, struct rule *ret)
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
	/*
	 * libdw says "same" if the CFI says nothing of the return address: the caller is unknown.
	 */
	if (!CPU_LINK_REGISTER && ra.kind == REG_SAME)
		return 0;
	/* The outermost frame: its CFA does not matter. */
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
		rule.may_install_handler = r == 0 && ends_by_eh_return(b, frame, &rule);
		correct_lazy_binding(&rule);
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

/*
 * The limit of work on one file, in the units of cfi_function_open(). The whole file of libLLVM-14
 * needs 2x10^8. With a malicious file, the work ends at this limit after a few seconds.
 */
#define WORK_MAX (UINT64_C(1) << 31)
/*
 * What a comparison of rows_add_full() or rows_add_ops() costs in these units. In known files all
 * comparisons are a hundredth of the work.
 */
#define WORK_COMPARE 16

enum { EH_FRAME, DEBUG_FRAME, SECTIONS };

/* A section, with the rows that have been compiled. */
struct section_rows {
	struct cfi_source source;
	struct rows **parts; /* part_fdes functions each; NULL: not compiled yet */
	size_t n_parts;
};

struct cfi {
	struct section_rows tables[SECTIONS];
	uint64_t base;
	uint64_t work; /* what is left of WORK_MAX */
	size_t part_fdes;
	size_t bytes;
};

static const struct rows no_rows;

/* Compiles the rows of entry number n. */
static int compile_entry(const struct cfi_source *source, size_t n, uint64_t *work,
			 struct rows_builder *b)
{
	const uint64_t next = n + 1 < source->n ? source->entries[n + 1].start : UINT64_MAX;
	uint64_t start = source->entries[n].start;
	Dwarf_Frame *frame = NULL;
	struct cfi_function function;
	bool is_start = true;
	int r;

	r = cfi_function_open(&function, source, n, work);
	if (r)
		return r == -ENOMEM ? r : 0;
	while (r == 0 && start < next && dwarf_cfi_addrframe(function.cfi, start, &frame) == 0) {
		Dwarf_Addr end = 0;
		bool is_signal = false;
		struct rule rule;

		if (dwarf_frame_info(frame, NULL, &end, &is_signal) < 0 || end <= start) {
			free(frame);
			break;
		}
		r = read_rule(b, frame, is_signal, &rule);
		free(frame);
		end = min_u64(end, next);
		if (r == 0)
			r = rows_add(b, start, end, is_start, &rule);
		is_start = false;
		start = end;
	}
	cfi_function_close(&function);
	return r;
}

static int compile_part(struct cfi *c, const struct section_rows *t, size_t part, struct rows *ret)
{
	const size_t first = part * c->part_fdes;
	const size_t end = first + min_size(c->part_fdes, t->source.n - first);
	struct rows_builder b;
	int r;

	r = rows_builder_init(&b, c->base);
	for (size_t n = first; n < end && r == 0; n++) {
		const uint64_t compares = c->work / WORK_COMPARE;

		b.compares = compares;
		r = compile_entry(&t->source, n, &c->work, &b);
		c->work -= min_u64(c->work, WORK_COMPARE * (compares - b.compares));
	}
	if (r == 0 || r == -E2BIG)
		r = rows_finish(&b, ret);
	rows_builder_fini(&b);
	return r;
}

int cfi_open_parts(const struct elf_file *f, uint64_t base, size_t part_fdes, struct cfi **ret)
{
	struct cfi *c = calloc(1, sizeof(*c));
	int r = 0;

	if (!c)
		return -ENOMEM;
	c->base = base;
	c->work = WORK_MAX;
	c->part_fdes = part_fdes;
	for (int i = 0; i < SECTIONS && r == 0; i++) {
		struct section_rows *t = &c->tables[i];

		r = cfi_source_open(&t->source, f, i == EH_FRAME);
		t->n_parts = (t->source.n + part_fdes - 1) / part_fdes;
		t->parts = calloc(t->n_parts + 1, sizeof(*t->parts));
		if (!t->parts)
			r = -ENOMEM;
		c->bytes += t->source.size + t->source.n * sizeof(t->source.entries[0]) +
			    t->n_parts * sizeof(t->parts[0]);
	}
	if (r)
		cfi_free(c);
	else
		*ret = c;
	return r;
}

int cfi_open(const struct elf_file *f, uint64_t base, struct cfi **ret)
{
	return cfi_open_parts(f, base, CFI_PART_FDES, ret);
}

void cfi_free(struct cfi *c)
{
	if (!c)
		return;
	for (int i = 0; i < SECTIONS; i++) {
		struct section_rows *t = &c->tables[i];

		for (size_t k = 0; t->parts && k < t->n_parts; k++) {
			if (t->parts[k])
				rows_fini(t->parts[k]);
			free(t->parts[k]);
		}
		free(t->parts);
		cfi_source_close(&t->source);
	}
	free(c);
}

/* Returns the rows of the part with the last function that starts at or before vaddr. */
static const struct rows *rows_of(struct cfi *c, struct section_rows *t, uint64_t vaddr)
{
	const struct cfi_source *s = &t->source;
	const size_t n = array_upper_bound(s->entries, s->n, start, vaddr);
	const size_t part = (n - 1) / c->part_fdes;
	struct rows *rows;

	if (n == 0)
		return &no_rows;
	if (t->parts[part])
		return t->parts[part];
	rows = calloc(1, sizeof(*rows));
	if (!rows || compile_part(c, t, part, rows)) {
		free(rows);
		return &no_rows;
	}
	c->bytes += sizeof(*rows) + rows->bytes;
	t->parts[part] = rows;
	return rows;
}

const struct rows *cfi_rows(struct cfi *c, uint64_t vaddr)
{
	const struct rows *rows;

	if (!c)
		return &no_rows;
	rows = rows_of(c, &c->tables[EH_FRAME], vaddr);
	/* Few files have both sections, so few are searched twice. */
	if (c->tables[DEBUG_FRAME].source.n > 0 && rows_find(rows, vaddr)->cfa == RULE_CFA_NONE)
		rows = rows_of(c, &c->tables[DEBUG_FRAME], vaddr);
	return rows;
}

uint64_t cfi_next_start(const struct cfi *c, uint64_t vaddr)
{
	uint64_t start = UINT64_MAX;

	for (int i = 0; c && i < SECTIONS; i++) {
		const struct cfi_source *s = &c->tables[i].source;
		const size_t n = array_upper_bound(s->entries, s->n, start, vaddr);

		if (n < s->n)
			start = min_u64(start, s->entries[n].start);
	}
	return start;
}

size_t cfi_bytes(const struct cfi *c)
{
	return c ? c->bytes : 0;
}
