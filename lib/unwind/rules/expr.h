/*
 * Evaluates the DWARF expressions of call frame information (CFI), on the registers of a
 * frame and the copied stack. Unwind rules that need more than an offset from a register
 * use expressions (rows.h).
 *
 * Operations that no CFI uses (branches, calls, types, TLS) are not supported: dwarf/cfi.c
 * makes no rule of an expression with one of them. The evaluator reads no memory but the copied
 * stack, allocates nothing, and executes each operation once.
 *
 * Source: DWARF 5, sections 2.5 and 6.4.2.
 */
#ifndef LIB_UNWIND_RULES_EXPR_H
#define LIB_UNWIND_RULES_EXPR_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/capture/sample.h"

/* Registers by DWARF number. Bit n of known: r[n] is valid. */
struct frame_regs {
	uint64_t known;
	uint64_t r[SAMPLE_REGS_MAX];
};

/*
 * The copied stack: bytes[0] is the byte at address lo, and hi is the exclusive end. If the thread
 * runs on another stack than its own, such as that of its signal handlers, there may be a second
 * range, a part of its own stack: second[0] is the byte at second_lo, second_hi the exclusive end.
 * second_lo == second_hi: there is no second range.
 */
struct stack_bytes {
	const uint8_t *bytes;
	uint64_t lo;
	uint64_t hi;
	const uint8_t *second;
	uint64_t second_lo;
	uint64_t second_hi;
};

/*
 * One operation. dwarf/cfi.c normalises the operations of DWARF to these:
 *   all constants              DW_OP_consts: value
 *   all registers              DW_OP_bregx: register reg, plus value
 *   all dereferences           DW_OP_deref_size: value is the size in bytes
 *   additions of a constant    DW_OP_plus_uconst: value
 *   all others                 the DW_OP_* itself; value is the operand, if any
 */
struct expr_op {
	int64_t value;
	uint16_t reg;
	uint8_t op;
	uint8_t reserved[5]; /* zero: operations are compared as bytes */
};

/* dwarf/cfi.c makes no rule of a longer expression. The longest one seen, of a PLT, has 11. */
#define EXPR_OPS_MAX 64

enum expr_result {
	EXPR_OK,
	EXPR_UNKNOWN_REGISTER, /* needs a register that is not in frame_regs.known */
	EXPR_UNREADABLE,       /* needs memory outside of the copied stack */
	EXPR_INVALID, /* operation not supported, operand stack too deep or empty, division by 0 */
};

/* Returns 1 if expr_eval() supports this normalised operation (struct expr_op), otherwise 0. */
int expr_op_known(uint8_t op);

/*
 * Reads size bytes (at most 8) at addr as a little-endian number. Returns
 * EXPR_OK or EXPR_UNREADABLE.
 */
enum expr_result stack_bytes_read(const struct stack_bytes *stack, uint64_t addr, size_t size,
				  uint64_t *ret);

/*
 * Evaluates n operations. Sets *ret to the result if it returns EXPR_OK, and *ret_missing to the
 * address that could not be read if it returns EXPR_UNREADABLE.
 *
 * cfa is the value of the operation DW_OP_call_frame_cfa, with which the expression of a register
 * begins (6.4.2; libdw adds the operation). For the expression of the CFA itself cfa is not used:
 * pass 0.
 *
 * *top becomes the highest end (exclusive) of the bytes that the expression has read in
 * [stack->lo, stack->hi), unless *top was higher before the call. The caller initialises *top.
 */
enum expr_result expr_eval(const struct expr_op *ops, size_t n, const struct frame_regs *regs,
			   const struct stack_bytes *stack, uint64_t cfa, uint64_t *top,
			   uint64_t *ret_missing, uint64_t *ret);

#endif
