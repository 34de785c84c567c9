/*
 * Compact unwind rows: for each range of addresses of an image, the rule that
 * finds the caller. Made by cfi.c, once per image; looked up for every frame.
 *
 * A row is six bytes: four of address and two of rule number, in two arrays,
 * so that the search touches addresses only. A row holds up to the next one;
 * gaps between functions are rows of ROWS_RULE_NONE. Equal neighbours are one
 * row unless a function starts there. Rules repeat a lot (libc has 25,000 rows
 * and a few hundred rules), so they stand once in a dictionary.
 */
#ifndef LIB_UNWIND_RULES_ROWS_H
#define LIB_UNWIND_RULES_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/unwind/rules/expr.h"

enum rule_cfa {
	RULE_CFA_NONE, /* nothing is known here */
	RULE_CFA_SP,   /* sp + cfa_offset */
	RULE_CFA_FP,   /* fp + cfa_offset */
	RULE_CFA_FULL, /* the whole rule is full rule number cfa_offset */
};

enum rule_fp {
	RULE_FP_SAME,  /* the frame has not touched it */
	RULE_FP_SAVED, /* at CFA + fp_offset */
	RULE_FP_UNDEFINED,
};

enum rule_ra {
	RULE_RA_SAVED,	   /* at CFA + ra_offset */
	RULE_RA_UNDEFINED, /* this is the root */
	RULE_RA_SAME,	   /* in its register, where a call has left it */
};

/* Other callee-saved registers, CPU_SAVED_REGS: rbx, r12 to r15 on x86-64. */
#define RULE_SAVED_N	     5
#define RULE_SAVED_SAME	     0
#define RULE_SAVED_UNDEFINED 255

/*
 * The usual rule: what needs more is a full rule. Rules are compared as bytes.
 */
struct rule {
	int32_t cfa_offset;
	int32_t fp_offset;
	int32_t ra_offset;
	uint8_t cfa;
	uint8_t fp;
	uint8_t ra;
	/*
	 * Where the other callee-saved registers are: 8 * n below the CFA.
	 * Hardly a frame needs them (the lazy binding of the dynamic linker has
	 * its CFA in rbx), so the walk restores them only when it has to.
	 */
	uint8_t saved[RULE_SAVED_N];
	uint8_t switches_stack;	     /* the caller's stack may be another one; with
				   RULE_RA_UNDEFINED nothing leads to it */
	uint8_t may_install_handler; /* as in struct full_rule */
	uint8_t reserved[2];
};

enum reg_kind {
	REG_UNDEFINED,
	REG_SAME,
	REG_SAVED,	/* at CFA + value */
	REG_CFA,	/* is CFA + value */
	REG_REGISTER,	/* is register number value */
	REG_SAVED_EXPR, /* at the address that the expression gives */
	REG_EXPR,	/* is what the expression gives */
};

struct reg_rule {
	int32_t value;
	uint32_t ops; /* first operation of the expression */
	uint16_t n_ops;
	uint16_t kind;
};

/* Every register, and the CFA by expression. */
struct full_rule {
	uint32_t cfa_ops;
	uint16_t cfa_n_ops;
	uint8_t is_signal;	     /* what it restores was interrupted, not called */
	uint8_t may_install_handler; /* it may have become an exception's handler's */
	struct reg_rule regs[SAMPLE_REGS_MAX];
};

#define ROWS_RULE_NONE 0 /* the dictionary's first entry: RULE_CFA_NONE */

/*
 * Two bytes of rule number, one bit of which says "a function starts here".
 * libLLVM-14 needs some thousand rules; where there are more, the surplus
 * becomes ROWS_RULE_NONE.
 */
#define ROWS_START     0x8000u
#define ROWS_RULES_MAX 0x8000u
/* Rules that need expressions: real files have fewer than ten. */
#define ROWS_FULL_MAX 1024u
#define ROWS_OPS_MAX  16384u
/* Five times libLLVM-14, 24 MB. */
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
	uint64_t base; /* added to pc it is the address in the file */
	size_t bytes;  /* of memory */
};

/* No rows; lookups find nothing. */
void rows_init(struct rows *r);
void rows_fini(struct rows *r);

/* The rule at an address of the file; rules[ROWS_RULE_NONE] if there is none.
 */
const struct rule *rows_find(const struct rows *r, uint64_t vaddr);

/* The start of the function (of the FDE) that vaddr lies in; false: none. */
bool rows_function(const struct rows *r, uint64_t vaddr, uint64_t *ret_start);

/*
 * The builder. Rows are added in ascending order; what does not fit the limits
 * above is dropped and counted.
 */
struct rows_builder {
	struct rows rows;
	size_t cap;
	size_t rules_cap;
	size_t full_cap;
	size_t ops_cap;
	uint32_t *hash; /* rule numbers + 1 by hash */
	uint64_t end;	/* of the last row's range */
	bool open;	/* the last row reaches up to end */
	size_t dropped;
};

must_check int rows_builder_init(struct rows_builder *b, uint64_t base);
void rows_builder_fini(struct rows_builder *b); /* also after finish */

/*
 * [start, end) has this rule; is_start: a function begins at start. Returns 0,
 * -ENOMEM, or -E2BIG at ROWS_MAX.
 */
must_check int rows_add(struct rows_builder *b, uint64_t start, uint64_t end, bool is_start,
			const struct rule *rule);

/*
 * Puts a full rule or operations into the pools. Returns its number, -E2BIG
 * if the pool is full, -ENOMEM.
 */
must_check int rows_add_full(struct rows_builder *b, const struct full_rule *f, int32_t *ret_index);
must_check int rows_add_ops(struct rows_builder *b, const struct expr_op *ops, size_t n,
			    uint32_t *ret_index);

/* Moves the rows out, in memory of the right size. */
must_check int rows_finish(struct rows_builder *b, struct rows *ret);

#endif
