/*
 * Unwind rows: for each address range of an image, the rule that finds the
 * caller of a frame there. Compiled once from call frame information
 * (dwarf/cfi.c) or Go's table (elf/gopclntab.c), and looked up for each frame.
 *
 * A row has six bytes: four of address and two of rule number, in two arrays, so
 * that the binary search reads addresses only. A row extends to the next one.
 * Gaps between functions are rows of ROWS_RULE_NONE. Equal neighbours are one
 * row, unless a function starts at the second. The rules are in a dictionary,
 * because they repeat: libc has 25,000 rows and a few hundred rules.
 *
 * Addresses are those of the file (vaddr) and at most 4 GiB above base.
 */
#ifndef LIB_UNWIND_RULES_ROWS_H
#define LIB_UNWIND_RULES_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/unwind/rules/expr.h"

enum rule_cfa {
	RULE_CFA_NONE, /* no rule for these addresses */
	RULE_CFA_SP,   /* sp + cfa_offset */
	RULE_CFA_FP,   /* fp + cfa_offset */
	RULE_CFA_FULL, /* a full rule, whose number is cfa_offset */
};

enum rule_fp {
	RULE_FP_SAME,  /* the function has not changed it */
	RULE_FP_SAVED, /* at CFA + fp_offset */
	RULE_FP_UNDEFINED,
};

enum rule_ra {
	RULE_RA_SAVED,	   /* at CFA + ra_offset */
	RULE_RA_UNDEFINED, /* the outermost frame */
	RULE_RA_SAME,	   /* in its register, where the call left it */
};

/* The other callee-saved registers, CPU_SAVED_REGS: rbx, r12 to r15 on x86-64. */
#define RULE_SAVED_N	     5
#define RULE_SAVED_SAME	     0
#define RULE_SAVED_UNDEFINED 255

/*
 * A simple rule. What does not fit is a full rule. Rules are compared as bytes,
 * so unused members are zero.
 */
struct rule {
	int32_t cfa_offset;
	int32_t fp_offset;
	int32_t ra_offset;
	uint8_t cfa; /* enum rule_cfa */
	uint8_t fp;  /* enum rule_fp */
	uint8_t ra;  /* enum rule_ra */
	/*
	 * The other callee-saved registers: 8 * n bytes below the CFA. The walk
	 * restores them only if it cannot go on otherwise, since hardly a frame
	 * needs them (the dynamic linker's lazy binding has its CFA in rbx).
	 */
	uint8_t saved[RULE_SAVED_N];
	/*
	 * The caller's frame may be on another stack. With RULE_RA_UNDEFINED
	 * nothing leads to that stack.
	 */
	uint8_t switches_stack;
	uint8_t may_install_handler; /* as in struct full_rule */
	uint8_t reserved[2];
};

enum reg_kind {
	REG_UNDEFINED,
	REG_SAME,
	REG_SAVED,	/* at CFA + value */
	REG_CFA,	/* CFA + value */
	REG_REGISTER,	/* in register number value */
	REG_SAVED_EXPR, /* at the address that the expression gives */
	REG_EXPR,	/* the value that the expression gives */
};

struct reg_rule {
	int32_t value;
	uint32_t ops; /* index of the first operation of the expression */
	uint16_t n_ops;
	uint16_t kind; /* enum reg_kind */
};

/* A full rule: the CFA by an expression, and each register by its own rule. */
struct full_rule {
	uint32_t cfa_ops;
	uint16_t cfa_n_ops;
	uint8_t is_signal; /* the frame that it restores was interrupted */
	/*
	 * The function ends with __builtin_eh_return. Just before it jumps to an
	 * exception handler its saved registers are those of the handler.
	 */
	uint8_t may_install_handler;
	struct reg_rule regs[SAMPLE_REGS_MAX];
};

#define ROWS_RULE_NONE 0 /* the dictionary's first entry: RULE_CFA_NONE */

/*
 * A rule number has two bytes. The highest bit says that a function starts
 * there. libLLVM-14 needs about a thousand rules. Rules above the limit become
 * ROWS_RULE_NONE.
 */
#define ROWS_START     0x8000u
#define ROWS_RULES_MAX 0x8000u
/* Rules with expressions: known files have fewer than ten. */
#define ROWS_FULL_MAX 1024u
#define ROWS_OPS_MAX  16384u
/* Five times the rows of libLLVM-14: 24 MB. */
#define ROWS_MAX (4u << 20)

struct rows {
	uint32_t *pc; /* relative to base, ascending */
	uint16_t *rule;
	size_t n;
	struct rule *rules;
	size_t n_rules;
	struct full_rule *full;
	size_t n_full;
	struct expr_op *ops;
	size_t n_ops;
	uint64_t base; /* pc + base is an address of the file */
	size_t bytes;  /* of memory */
};

/* Makes empty rows, in which nothing is found. */
void rows_init(struct rows *r);
void rows_fini(struct rows *r);

/* The rule at vaddr; one with RULE_CFA_NONE if there is none. Never NULL. */
const struct rule *rows_find(const struct rows *r, uint64_t vaddr);

/* The start of the function (its FDE) that covers vaddr. False if none does. */
bool rows_function(const struct rows *r, uint64_t vaddr, uint64_t *ret_start);

/*
 * Builds rows. They are added in ascending order. Rows and rules above the
 * limits are left out and counted in dropped.
 */
struct rows_builder {
	struct rows rows;
	size_t cap;
	size_t rules_cap;
	size_t full_cap;
	size_t ops_cap;
	uint32_t *hash; /* rule number + 1, by hash */
	uint64_t end;	/* of the last row */
	bool open;	/* the last row has no row behind it yet */
	size_t dropped;
};

/* Returns 0 or -ENOMEM. */
must_check int rows_builder_init(struct rows_builder *b, uint64_t base);
/* Must also be called after rows_finish(). */
void rows_builder_fini(struct rows_builder *b);

/*
 * Adds the range [start, end) with this rule. is_start: a function begins at
 * start. Returns 0, -ENOMEM, or -E2BIG at ROWS_MAX.
 */
must_check int rows_add(struct rows_builder *b, uint64_t start, uint64_t end, bool is_start,
			const struct rule *rule);

/*
 * Store a full rule, or operations, once. *ret_index is the number that a rule
 * refers to. Return 0, -E2BIG if there are too many, or -ENOMEM.
 */
must_check int rows_add_full(struct rows_builder *b, const struct full_rule *f, int32_t *ret_index);
must_check int rows_add_ops(struct rows_builder *b, const struct expr_op *ops, size_t n,
			    uint32_t *ret_index);

/* Moves the rows to *ret and gives unused memory back. Returns 0 or -ENOMEM. */
must_check int rows_finish(struct rows_builder *b, struct rows *ret);

#endif
