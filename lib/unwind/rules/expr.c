#include "lib/unwind/rules/expr.h"

#include <dwarf.h>
#include <string.h>

/* Entries of the stack. DWARF has no limit; real CFI needs 3. */
#define DEPTH_MAX 32

enum expr_result stack_bytes_read(const struct stack_bytes *stack, uint64_t addr, size_t size,
				  uint64_t *ret)
{
	const uint8_t *from;
	uint64_t value = 0;

	if (addr >= stack->lo && addr <= stack->hi && stack->hi - addr >= size)
		from = stack->bytes + (addr - stack->lo);
	else if (addr >= stack->second_lo && addr <= stack->second_hi &&
		 stack->second_hi - addr >= size)
		from = stack->second + (addr - stack->second_lo);
	else
		return EXPR_UNREADABLE;
	memcpy(&value, from, size);
	*ret = value;
	return EXPR_OK;
}

/* Executes an operation on the two topmost entries; a is below b. */
static enum expr_result binary(uint8_t op, uint64_t a, uint64_t b, uint64_t *ret)
{
	switch (op) {
	case DW_OP_and:
		*ret = a & b;
		return EXPR_OK;
	case DW_OP_or:
		*ret = a | b;
		return EXPR_OK;
	case DW_OP_xor:
		*ret = a ^ b;
		return EXPR_OK;
	case DW_OP_plus:
		*ret = a + b;
		return EXPR_OK;
	case DW_OP_minus:
		*ret = a - b;
		return EXPR_OK;
	case DW_OP_mul:
		*ret = a * b;
		return EXPR_OK;
	case DW_OP_div:
		/* signed; this overflow traps on x86 */
		if (b == 0 || (a == (uint64_t)INT64_MIN && b == UINT64_MAX))
			return EXPR_INVALID;
		*ret = (uint64_t)((int64_t)a / (int64_t)b);
		return EXPR_OK;
	case DW_OP_mod:
		if (b == 0)
			return EXPR_INVALID;
		*ret = a % b;
		return EXPR_OK;
	case DW_OP_shl:
		*ret = b < 64 ? a << b : 0;
		return EXPR_OK;
	case DW_OP_shr:
		*ret = b < 64 ? a >> b : 0;
		return EXPR_OK;
	case DW_OP_shra:
		*ret = (uint64_t)((int64_t)a >> (b < 64 ? b : 63));
		return EXPR_OK;
	case DW_OP_eq:
		*ret = a == b;
		return EXPR_OK;
	case DW_OP_ne:
		*ret = a != b;
		return EXPR_OK;
	case DW_OP_lt:
		*ret = (int64_t)a < (int64_t)b;
		return EXPR_OK;
	case DW_OP_le:
		*ret = (int64_t)a <= (int64_t)b;
		return EXPR_OK;
	case DW_OP_gt:
		*ret = (int64_t)a > (int64_t)b;
		return EXPR_OK;
	case DW_OP_ge:
		*ret = (int64_t)a >= (int64_t)b;
		return EXPR_OK;
	}
	return EXPR_INVALID;
}

/* Returns the number of entries that an operation needs. -1: it is not supported. */
static int operands(uint8_t op)
{
	switch (op) {
	case DW_OP_nop:
	case DW_OP_consts:
	case DW_OP_bregx:
	case DW_OP_call_frame_cfa:
	case DW_OP_pick: /* checked where it is executed */
		return 0;
	case DW_OP_deref_size:
	case DW_OP_plus_uconst:
	case DW_OP_dup:
	case DW_OP_drop:
	case DW_OP_abs:
	case DW_OP_neg:
	case DW_OP_not:
		return 1;
	case DW_OP_swap:
	case DW_OP_and:
	case DW_OP_or:
	case DW_OP_xor:
	case DW_OP_plus:
	case DW_OP_minus:
	case DW_OP_mul:
	case DW_OP_div:
	case DW_OP_mod:
	case DW_OP_shl:
	case DW_OP_shr:
	case DW_OP_shra:
	case DW_OP_eq:
	case DW_OP_ne:
	case DW_OP_lt:
	case DW_OP_le:
	case DW_OP_gt:
	case DW_OP_ge:
		return 2;
	case DW_OP_rot:
		return 3;
	}
	return -1;
}

int expr_op_known(uint8_t op)
{
	return operands(op) >= 0;
}

enum expr_result expr_eval(const struct expr_op *ops, size_t n, const struct frame_regs *regs,
			   const struct stack_bytes *stack, uint64_t cfa, uint64_t *top,
			   uint64_t *ret_missing, uint64_t *ret)
{
	uint64_t s[DEPTH_MAX + 1] = {0}; /* s[0] is below the first entry */
	size_t depth = 0;
	uint64_t t;

	for (size_t i = 0; i < n; i++) {
		const struct expr_op *o = &ops[i];
		int needed = operands(o->op);

		if (needed < 0 || depth < (size_t)needed || depth >= DEPTH_MAX)
			return EXPR_INVALID;
		switch (o->op) {
		case DW_OP_nop:
			break;
		case DW_OP_consts:
			s[++depth] = (uint64_t)o->value;
			break;
		case DW_OP_bregx:
			if (o->reg >= SAMPLE_REGS_MAX || !(regs->known >> o->reg & 1))
				return EXPR_UNKNOWN_REGISTER;
			s[++depth] = regs->r[o->reg] + (uint64_t)o->value;
			break;
		case DW_OP_call_frame_cfa:
			s[++depth] = cfa;
			break;
		case DW_OP_plus_uconst:
			s[depth] += (uint64_t)o->value;
			break;
		case DW_OP_deref_size:
			if (o->value < 1 || o->value > 8)
				return EXPR_INVALID;
			if (stack_bytes_read(stack, s[depth], (size_t)o->value, &t)) {
				*ret_missing = s[depth];
				return EXPR_UNREADABLE;
			}
			if (s[depth] >= stack->lo && s[depth] < stack->hi)
				*top = max_u64(*top, s[depth] + (uint64_t)o->value);
			s[depth] = t;
			break;
		case DW_OP_dup:
			t = s[depth];
			s[++depth] = t;
			break;
		case DW_OP_drop:
			depth--;
			break;
		case DW_OP_pick:
			if (o->value < 0 || (uint64_t)o->value >= depth)
				return EXPR_INVALID;
			t = s[depth - (size_t)o->value];
			s[++depth] = t;
			break;
		case DW_OP_swap:
			t = s[depth];
			s[depth] = s[depth - 1];
			s[depth - 1] = t;
			break;
		case DW_OP_rot:
			t = s[depth];
			s[depth] = s[depth - 1];
			s[depth - 1] = s[depth - 2];
			s[depth - 2] = t;
			break;
		case DW_OP_abs:
			if ((int64_t)s[depth] < 0)
				s[depth] = 0 - s[depth];
			break;
		case DW_OP_neg:
			s[depth] = 0 - s[depth];
			break;
		case DW_OP_not:
			s[depth] = ~s[depth];
			break;
		default:
			if (binary(o->op, s[depth - 1], s[depth], &t))
				return EXPR_INVALID;
			s[--depth] = t;
		}
	}
	if (depth == 0)
		return EXPR_INVALID;
	*ret = s[depth];
	return EXPR_OK;
}
