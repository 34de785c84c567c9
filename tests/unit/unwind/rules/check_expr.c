#include "lib/unwind/rules/expr.h"

#include <dwarf.h>
#include <string.h>

#include "tests/unit/suite.h"

#define LO UINT64_C(0x1000)

static const uint64_t words[4] = {0x1111, 0x1010, UINT64_MAX, 0x8070605040302010};
static struct frame_regs regs;
static uint64_t top;
static uint64_t missing;
static uint64_t value;

#define CONST(v)                                 \
	{                                        \
		.op = DW_OP_consts, .value = (v) \
	}
#define REG(n, v)                                           \
	{                                                   \
		.op = DW_OP_bregx, .reg = (n), .value = (v) \
	}
#define OP(o)             \
	{                 \
		.op = (o) \
	}
#define OP_VALUE(o, v)                  \
	{                               \
		.op = (o), .value = (v) \
	}

static enum expr_result eval(const struct expr_op *ops, size_t n)
{
	const struct stack_bytes stack = {
		.bytes = (const uint8_t *)words,
		.lo = LO,
		.hi = LO + sizeof(words),
	};

	regs.known = 1u << 7 | 1u << 16;
	regs.r[7] = LO;
	regs.r[16] = 0x40100b;
	top = 0;
	missing = 0;
	return expr_eval(ops, n, &regs, &stack, 0xcfa, &top, &missing, &value);
}

#define EVAL(...)                                   \
	eval((const struct expr_op[]){__VA_ARGS__}, \
	     sizeof((const struct expr_op[]){__VA_ARGS__}) / sizeof(struct expr_op))

TEST(the_expression_of_a_plt_is_evaluated)
{
	/* rsp + 8 + ((rip & 15) >= 11) << 3 */
	const struct expr_op plt[] = {
		REG(7, 8), CONST(0),	  OP(DW_OP_plus), REG(16, 0),
		CONST(15), OP(DW_OP_and), CONST(11),	  OP(DW_OP_ge),
		CONST(3),  OP(DW_OP_shl), OP(DW_OP_plus),
	};

	ck_assert_int_eq(eval(plt, 11), EXPR_OK);
	ck_assert_uint_eq(value, LO + 16);
	ck_assert_uint_eq(top, 0);
}

TEST(only_the_copied_stack_can_be_read)
{
	ck_assert_int_eq(
		EVAL(REG(7, 8), OP_VALUE(DW_OP_deref_size, 8), OP_VALUE(DW_OP_plus_uconst, -16)),
		EXPR_OK);
	ck_assert_uint_eq(value, 0x1000);
	ck_assert_uint_eq(top, LO + 16);
	ck_assert_int_eq(EVAL(REG(7, 24), OP_VALUE(DW_OP_deref_size, 2)), EXPR_OK);
	ck_assert_uint_eq(value, 0x2010);
	ck_assert_int_eq(EVAL(REG(7, 25), OP_VALUE(DW_OP_deref_size, 8)), EXPR_UNREADABLE);
	ck_assert_uint_eq(missing, LO + 25);
	ck_assert_int_eq(EVAL(REG(7, -1), OP_VALUE(DW_OP_deref_size, 1)), EXPR_UNREADABLE);
	ck_assert_int_eq(EVAL(CONST(-4), OP_VALUE(DW_OP_deref_size, 8)), EXPR_UNREADABLE);
	ck_assert_int_eq(EVAL(REG(7, 0), OP_VALUE(DW_OP_deref_size, 9)), EXPR_INVALID);
}

static const struct {
	uint8_t op;
	int64_t a;
	int64_t b;
	int64_t result;
} binaries[] = {
	{DW_OP_and, 12, 10, 8},	  {DW_OP_or, 12, 10, 14},    {DW_OP_xor, 12, 10, 6},
	{DW_OP_plus, 12, -10, 2}, {DW_OP_minus, 10, 12, -2}, {DW_OP_mul, -3, 4, -12},
	{DW_OP_div, -12, 4, -3},  {DW_OP_mod, 14, 4, 2},     {DW_OP_shl, 1, 63, INT64_MIN},
	{DW_OP_shl, 1, 64, 0},	  {DW_OP_shr, -1, 63, 1},    {DW_OP_shr, -1, 64, 0},
	{DW_OP_shra, -8, 1, -4},  {DW_OP_shra, -8, 99, -1},  {DW_OP_eq, 1, 1, 1},
	{DW_OP_ne, 1, 1, 0},	  {DW_OP_lt, -1, 1, 1},	     {DW_OP_le, 1, 1, 1},
	{DW_OP_gt, -1, 1, 0},	  {DW_OP_ge, 0, 1, 0},
};

TESTS(binary_operations_have_the_results_of_dwarf, (array_size(binaries)))
{
	ck_assert(expr_op_known(binaries[_i].op));
	ck_assert_int_eq(EVAL(CONST(binaries[_i].a), CONST(binaries[_i].b), OP(binaries[_i].op)),
			 EXPR_OK);
	ck_assert_int_eq((int64_t)value, binaries[_i].result);
}

TEST(stack_operations_have_the_results_of_dwarf)
{
	ck_assert_int_eq(EVAL(CONST(1), CONST(2), OP(DW_OP_swap), OP(DW_OP_minus)), EXPR_OK);
	ck_assert_uint_eq(value, 1);
	/* 1 2 3 rot: 3 1 2 */
	ck_assert_int_eq(EVAL(CONST(1), CONST(2), CONST(3), OP(DW_OP_rot), OP(DW_OP_drop)),
			 EXPR_OK);
	ck_assert_uint_eq(value, 1);
	ck_assert_int_eq(EVAL(CONST(7), CONST(8), OP_VALUE(DW_OP_pick, 1)), EXPR_OK);
	ck_assert_uint_eq(value, 7);
	ck_assert_int_eq(
		EVAL(CONST(-7), OP(DW_OP_abs), OP(DW_OP_dup), OP(DW_OP_neg), OP(DW_OP_not)),
		EXPR_OK);
	ck_assert_uint_eq(value, 6);
	ck_assert_int_eq(EVAL(OP(DW_OP_call_frame_cfa), OP(DW_OP_nop)), EXPR_OK);
	ck_assert_uint_eq(value, 0xcfa);
}

TEST(invalid_expressions_are_refused)
{
	struct expr_op many[EXPR_OPS_MAX];

	for (size_t i = 0; i < EXPR_OPS_MAX; i++)
		many[i] = (struct expr_op)CONST(1);
	ck_assert_int_eq(eval(many, EXPR_OPS_MAX), EXPR_INVALID);
	ck_assert_int_eq(eval(many, 0), EXPR_INVALID);
	ck_assert_int_eq(EVAL(OP(DW_OP_plus)), EXPR_INVALID);
	ck_assert_int_eq(EVAL(CONST(1), OP(DW_OP_plus)), EXPR_INVALID);
	ck_assert_int_eq(EVAL(CONST(1), OP(DW_OP_drop)), EXPR_INVALID);
	ck_assert_int_eq(EVAL(CONST(1), CONST(0), OP(DW_OP_div)), EXPR_INVALID);
	ck_assert_int_eq(EVAL(CONST(1), CONST(0), OP(DW_OP_mod)), EXPR_INVALID);
	ck_assert_int_eq(EVAL(CONST(INT64_MIN), CONST(-1), OP(DW_OP_div)), EXPR_INVALID);
	ck_assert_int_eq(EVAL(CONST(1), OP_VALUE(DW_OP_pick, 1)), EXPR_INVALID);
	ck_assert_int_eq(EVAL(OP(DW_OP_skip)), EXPR_INVALID);
	ck_assert(!expr_op_known(DW_OP_skip));
	ck_assert_int_eq(EVAL(REG(6, 0)), EXPR_UNKNOWN_REGISTER);
	ck_assert_int_eq(EVAL(REG(SAMPLE_REGS_MAX, 0)), EXPR_UNKNOWN_REGISTER);
}
