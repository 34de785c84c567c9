/*
 * Unwind rows: for each address range of an image, the rule that finds the
 * caller of a frame there. The rows of an image are compiled once, from call frame information
 * (dwarf/cfi.c) or Go's table (elf/gopclntab.c). The walk looks up a rule for each frame.
 *
 * A row is an address and the number of a rule. A row extends to the address of the next one, and
 * a gap between functions is a row, too. Two functions, [0x10, 0x40) and [0x50, 0x60), may have
 *
 *     0x10  rule 1, ROWS_START   the first function
 *     0x14  rule 2
 *     0x40  ROWS_RULE_NONE       the gap
 *     0x50  rule 1, ROWS_START   the second function
 *     0x60  ROWS_RULE_NONE       its end
 *
 * Equal rules are stored once, because rules repeat: libc has 25,000 rows and a few hundred rules.
 * Addresses and rule numbers are in two arrays, so that the binary search reads addresses only.
 *
 * Addresses are those of the file (vaddr) and at most 4 GiB above rows.base. The CFA (canonical
 * frame address) is the stack pointer before the call of the function.
 */
#ifndef LIB_UNWIND_RULES_ROWS_H
#define LIB_UNWIND_RULES_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/unwind/rules/expr.h"

/* How a rule finds the CFA. */
enum rule_cfa {
	RULE_CFA_NONE, /* no rule for these addresses */
	RULE_CFA_SP,   /* sp + cfa_offset */
	RULE_CFA_FP,   /* fp + cfa_offset */
	RULE_CFA_FULL, /* by a full rule: rows.full[cfa_offset] */
};

/* Where the caller's frame pointer is. */
enum rule_fp {
	RULE_FP_SAME,	   /* the function has not changed the caller's frame pointer */
	RULE_FP_SAVED,	   /* at CFA + fp_offset */
	RULE_FP_UNDEFINED, /* the caller's frame pointer is lost */
};

/* Where the return address is. */
enum rule_ra {
	RULE_RA_SAVED,	   /* at CFA + ra_offset */
	RULE_RA_UNDEFINED, /* there is no caller: the outermost frame */
	RULE_RA_SAME,	   /* in the link register, unchanged since the call (aarch64) */
};

/*
 * The number of callee-saved registers, beside the frame pointer, that a simple rule has room for
 * (CPU_SAVED_REGS): rbx and r12 to r15 on x86-64, x19 to x23 on aarch64. RULE_SAVED_SAME and
 * RULE_SAVED_UNDEFINED are values of rule.saved[].
 */
#define RULE_SAVED_N	     5
#define RULE_SAVED_SAME	     0
#define RULE_SAVED_UNDEFINED 255

/*
 * A simple rule or, if cfa is RULE_CFA_FULL, a reference to a full rule, for CFI that does not fit
 * into a simple one. Rules are compared as bytes, so unused members are zero.
 */
struct rule {
	int32_t cfa_offset;
	int32_t fp_offset;
	int32_t ra_offset;
	uint8_t cfa; /* enum rule_cfa */
	uint8_t fp;  /* enum rule_fp */
	uint8_t ra;  /* enum rule_ra */
	/*
	 * saved[k] is about register k of CPU_SAVED_REGS. RULE_SAVED_SAME: the function
	 * has not changed it. RULE_SAVED_UNDEFINED: the caller's value is lost. Any other
	 * n: it is saved at CFA - 8 * n. The walk restores these registers only when a
	 * rule needs one. That is rare; an example is the dynamic linker's lazy binding,
	 * whose CFA is relative to rbx.
	 */
	uint8_t saved[RULE_SAVED_N];
	/*
	 * 1: the caller's frame may be on another stack. If ra is also
	 * RULE_RA_UNDEFINED, that stack is unknown and the walk ends here.
	 */
	uint8_t switches_stack;
	uint8_t may_install_handler; /* as in struct full_rule */
	uint8_t reserved[2];
};

/* What the caller had in a register, by a full rule. v is reg_rule.value. */
enum reg_kind {
	REG_UNDEFINED,	/* unknown: it is lost */
	REG_SAME,	/* what is in the same register: unchanged; of sp: the CFA */
	REG_SAVED,	/* the word at address CFA + v */
	REG_CFA,	/* CFA + v itself */
	REG_REGISTER,	/* what is in register number v */
	REG_SAVED_EXPR, /* the word at the address that is the result of the expression */
	REG_EXPR,	/* the result of the expression itself */
};

struct reg_rule {
	int32_t value;
	uint32_t ops; /* index in rows.ops of the expression's first operation */
	uint16_t n_ops;
	uint16_t kind; /* enum reg_kind */
};

/* A full rule: the CFA by an expression, and each register by its own rule. */
struct full_rule {
	uint32_t cfa_ops; /* index in rows.ops of the CFA's first operation */
	uint16_t cfa_n_ops;
	/*
	 * 1: a signal interrupted the caller, so the caller's pc is its next instruction,
	 * and not a return address behind a call.
	 */
	uint8_t is_signal;
	/*
	 * 1: the function ends with __builtin_eh_return, a jump to an exception
	 * handler. Just before the jump it replaces the registers that it has saved by
	 * the handler's. From there on the rule does not give the caller's registers.
	 */
	uint8_t may_install_handler;
	struct reg_rule regs[SAMPLE_REGS_MAX]; /* by DWARF number; CPU_RA: the return address */
};

#define ROWS_RULE_NONE 0 /* the number of rows.rules[0], whose cfa is RULE_CFA_NONE */

/*
 * A rule number has two bytes. The highest bit, ROWS_START, says that a function
 * starts at the row. libLLVM-14 needs about a thousand rules.
 */
#define ROWS_START     0x8000u
#define ROWS_RULES_MAX 0x8000u
/* The most full rules, and operations. Known files have fewer than ten full rules. */
#define ROWS_FULL_MAX 1024u
#define ROWS_OPS_MAX  16384u
/* Four times the rows of libLLVM-14: 24 MiB of rows. */
#define ROWS_MAX (4u << 20)

/* The rows of an image. A zeroed struct has no rows: each lookup finds RULE_CFA_NONE. */
struct rows {
	uint32_t *pc;	/* relative to base, ascending */
	uint16_t *rule; /* index in rules, with ROWS_START */
	size_t n;
	struct rule *rules;
	size_t n_rules;
	struct full_rule *full;
	size_t n_full;
	struct expr_op *ops;
	size_t n_ops;
	uint64_t base; /* pc + base is an address of the file */
	size_t bytes;  /* the size of all arrays; set by rows_finish() */
};

/* Frees the arrays, and leaves empty rows. */
void rows_fini(struct rows *r);

/*
 * Returns the rule at vaddr, or one with RULE_CFA_NONE if there is none. Never NULL.
 * The result is valid until rows_fini().
 */
const struct rule *rows_find(const struct rows *r, uint64_t vaddr);

/* Sets *ret_start to the start of the function that covers vaddr. Returns false if none does. */
bool rows_function(const struct rows *r, uint64_t vaddr, uint64_t *ret_start);

/*
 * Builds rows: rows_builder_init(), rows_add() for each range in ascending order, rows_finish(),
 * rows_builder_fini().
 */
struct rows_builder {
	struct rows rows;
	size_t cap;
	size_t rules_cap;
	size_t full_cap;
	size_t ops_cap;
	uint32_t *hash; /* open-addressing table: rule number + 1; 0: empty slot */
	uint64_t end;	/* the end of the last range */
	bool open;	/* no row marks the end of the last range yet */
	size_t dropped; /* ranges, rules and expressions left out because of a limit */
	/*
	 * How many comparisons rows_add_full() and rows_add_ops() may still make to find an equal
	 * rule or expression. rows_builder_init() sets UINT64_MAX; the caller may lower it. At 0
	 * they store an equal one once more.
	 */
	uint64_t compares;
};

/* base becomes rows.base. Returns 0 or -ENOMEM; after -ENOMEM nothing needs to be freed. */
must_check int rows_builder_init(struct rows_builder *b, uint64_t base);
/* Must also be called after rows_finish(). */
void rows_builder_fini(struct rows_builder *b);

/*
 * Adds the range [start, end) with this rule. The range must not be empty, and must
 * not begin before the end of the previous one. is_start: a function begins at start.
 *
 * Returns 0, -ENOMEM, or -E2BIG at ROWS_MAX rows: then the range is not added. In two cases it
 * returns 0 and adds 1 to dropped: above ROWS_RULES_MAX rules a range with a new rule gets
 * ROWS_RULE_NONE; a range outside the 4 GiB above base is not added.
 */
must_check int rows_add(struct rows_builder *b, uint64_t start, uint64_t end, bool is_start,
			const struct rule *rule);

/*
 * Store a full rule, or the n operations of an expression; equal ones are stored once, as long as
 * rows_builder.compares is not 0. Set *ret_index to the index in rows.full, for rule.cfa_offset, or
 * in rows.ops, for full_rule.cfa_ops or reg_rule.ops. Return 0; -ENOMEM; or -E2BIG above
 * ROWS_FULL_MAX or ROWS_OPS_MAX, which is also counted in dropped.
 */
must_check int rows_add_full(struct rows_builder *b, const struct full_rule *f, int32_t *ret_index);
must_check int rows_add_ops(struct rows_builder *b, const struct expr_op *ops, size_t n,
			    uint32_t *ret_index);

/*
 * Moves the rows to *ret, and gives unused memory back. The caller frees *ret with rows_fini().
 * Returns 0 or -ENOMEM.
 */
must_check int rows_finish(struct rows_builder *b, struct rows *ret);

#endif
