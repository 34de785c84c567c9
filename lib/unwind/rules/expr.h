/*
 * DWARF expressions of call frame information: a checked evaluator over the
 * registers of a frame and the copied stack.
 *
 * Source: DWARF 5, sections 2.5 and 6.4.2. What no CFI uses (branches, calls,
 * types, TLS) is left out: such an expression is refused when it is compiled.
 */
#ifndef LIB_UNWIND_RULES_EXPR_H
#define LIB_UNWIND_RULES_EXPR_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/capture/sample.h"

/* Registers by DWARF number; bit n of known: r[n] is valid. */
struct frame_regs {
	uint64_t known;
	uint64_t r[SAMPLE_REGS_MAX];
};

/* The bytes of a stack: [lo, hi), and of a second one, which may be empty. */
struct stack_bytes {
	const uint8_t *bytes;
	uint64_t lo;
	uint64_t hi;
	const uint8_t *second;
	uint64_t second_lo;
	uint64_t second_hi;
};

/*
 * One operation: op is a DW_OP_* in a normal form: constants are DW_OP_consts
 * with value, registers DW_OP_bregx with reg and value, dereferences
 * DW_OP_deref_size with value, additions of constants DW_OP_plus_uconst.
 */
struct expr_op {
	int64_t value;
	uint16_t reg;
	uint8_t op;
	uint8_t reserved[5]; /* zero: operations are compared as bytes */
};

/* Longer ones than this are refused; the longest known, PLT, has 11. */
#define EXPR_OPS_MAX 64

enum expr_result {
	EXPR_OK,
	EXPR_UNKNOWN_REGISTER,
	EXPR_UNREADABLE, /* reads what is not in the stack bytes */
	EXPR_INVALID,	 /* stack under- or overflow, division by zero */
};

/* True if op is one that expr_eval knows. */
int expr_op_known(uint8_t op);

/* Eight bytes (or size of them) at addr, little-endian, zero-extended. */
enum expr_result stack_read(const struct stack_bytes *stack, uint64_t addr, size_t size,
			    uint64_t *ret);

/*
 * Evaluates n operations. cfa is what DW_OP_call_frame_cfa gives. The end
 * (exclusive) of the highest byte of [lo, hi) that was read raises *top; where
 * the result is EXPR_UNREADABLE, what could not be read goes to *ret_missing.
 */
enum expr_result expr_eval(const struct expr_op *ops, size_t n, const struct frame_regs *regs,
			   const struct stack_bytes *stack, uint64_t cfa, uint64_t *top,
			   uint64_t *ret_missing, uint64_t *ret);

#endif
