#include "lib/unwind/dwarf/cfi_check.h"

#include <dwarf.h>

#include "lib/base/leb128.h"

/* x86-64 has 67 numbered registers without the AVX-512 ones, aarch64 96. */
#define REGISTERS_MAX 128
/* gcc and clang nest to a depth of two. */
#define REMEMBER_MAX 16

/*
 * What follows an instruction's byte: a register (r), a number of any length
 * (n), a block with its length (b), one, two or four bytes (1, 2, 4). NULL: no
 * instruction, or DW_CFA_set_loc, which no compiler writes.
 */
static const char *const operands[DW_CFA_high_user + 1] = {
	[DW_CFA_nop] = "",
	[DW_CFA_advance_loc1] = "1",
	[DW_CFA_advance_loc2] = "2",
	[DW_CFA_advance_loc4] = "4",
	[DW_CFA_offset_extended] = "rn",
	[DW_CFA_restore_extended] = "r",
	[DW_CFA_undefined] = "r",
	[DW_CFA_same_value] = "r",
	[DW_CFA_register] = "rr",
	[DW_CFA_remember_state] = "",
	[DW_CFA_restore_state] = "",
	[DW_CFA_def_cfa] = "rn",
	[DW_CFA_def_cfa_register] = "r",
	[DW_CFA_def_cfa_offset] = "n",
	[DW_CFA_def_cfa_expression] = "b",
	[DW_CFA_expression] = "rb",
	[DW_CFA_offset_extended_sf] = "rn",
	[DW_CFA_def_cfa_sf] = "rn",
	[DW_CFA_def_cfa_offset_sf] = "n",
	[DW_CFA_val_offset] = "rn",
	[DW_CFA_val_offset_sf] = "rn",
	[DW_CFA_val_expression] = "rb",
	[DW_CFA_GNU_window_save] = "", /* aarch64: negate_ra_state */
	[DW_CFA_GNU_args_size] = "n",
	[DW_CFA_GNU_negative_offset_extended] = "rn",
};

static bool skip(const uint8_t **p, const uint8_t *end, uint64_t n)
{
	if ((uint64_t)(end - *p) < n)
		return false;
	*p += n;
	return true;
}

static bool skip_operand(const uint8_t **p, const uint8_t *end, char operand)
{
	uint64_t n;

	switch (operand) {
	case 'r':
		return leb128_read(p, end, &n) && n < REGISTERS_MAX;
	case 'n':
		return leb128_read(p, end, &n);
	case 'b':
		return leb128_read(p, end, &n) && skip(p, end, n);
	default:
		return skip(p, end, (uint64_t)(operand - '0'));
	}
}

bool cfi_check_program(const uint8_t *p, const uint8_t *end, uint64_t *ret_rows)
{
	unsigned int nested = 0;
	uint64_t rows = 1;

	while (p < end) {
		const uint8_t op = *p++;
		const char *o = operands[op & DW_CFA_high_user];

		/* Three have an operand in the instruction's byte. */
		if (op & ~DW_CFA_high_user)
			o = (op & ~DW_CFA_high_user) == DW_CFA_offset ? "n" : "";
		if (!o)
			return false;
		for (; *o != '\0'; o++)
			if (!skip_operand(&p, end, *o))
				return false;
		rows += (op & ~DW_CFA_high_user) == DW_CFA_advance_loc ||
			(op >= DW_CFA_advance_loc1 && op <= DW_CFA_advance_loc4);
		nested += op == DW_CFA_remember_state;
		nested -= op == DW_CFA_restore_state;
		if (nested > REMEMBER_MAX)
			return false;
	}
	*ret_rows = rows;
	return true;
}
