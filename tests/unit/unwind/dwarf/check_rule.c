/*
 * Tests of rules from made-up call frame information, for the processor that the test is compiled
 * for (cpu.h), which may not be the one that runs it.
 */
#include "lib/unwind/dwarf/cfi.h"

#include <dwarf.h>
#include <string.h>

#include "lib/unwind/cpu.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/suite.h"

#define CODE	  0x1000
#define CODE_SIZE 0x100

/* A caller-saved register on both processors, which may hold a CFA. */
#define SCRATCH 9

/* Makes a CIE with these instructions, and one function without any. */
static size_t make_cfi(uint8_t *to, const uint8_t *instructions, size_t n)
{
	const uint64_t start = CODE, size = CODE_SIZE;
	const uint32_t cie_id = UINT32_MAX, cie_at = 0;
	uint32_t length = 24, fde_length = 4 + 8 + 8;
	uint8_t *p = to;

	ck_assert_uint_le(n, 15);
	memcpy(p, &length, 4);
	memcpy(p + 4, &cie_id, 4);
	p[8] = 1;     /* version */
	p[9] = 0;     /* no augmentation */
	p[10] = 1;    /* of code */
	p[11] = 0x78; /* of data: -8 */
	p[12] = CPU_RA;
	memset(p + 13, DW_CFA_nop, 15);
	memcpy(p + 13, instructions, n);
	p += 4 + length;
	memcpy(p, &fde_length, 4);
	memcpy(p + 4, &cie_at, 4);
	memcpy(p + 8, &start, 8);
	memcpy(p + 16, &size, 8);
	return (size_t)(p + 24 - to);
}

/* Compiles the function's rows. The result owns them. */
static struct cfi *compile(const uint8_t *instructions, size_t n, const struct rows **ret)
{
	uint8_t bytes[64];
	const struct fuzz_section section = {
		.name = ".debug_frame",
		.type = SHT_PROGBITS,
		.bytes = bytes,
		.size = make_cfi(bytes, instructions, n),
	};
	int fd = fuzz_elf(&section, 1);
	struct elf_file f;
	struct cfi *cfi;

	OK(elf_file_open(&f, fd));
	OK(cfi_open(&f, 0, &cfi));
	*ret = cfi_rows(cfi, CODE);
	elf_file_close(&f);
	close_fd(&fd);
	return cfi;
}

/* CFA: the value of SCRATCH. */
static const uint8_t cfa_in_scratch[] = {DW_CFA_def_cfa, SCRATCH, 0};

/* CFA: 16 above the stack pointer. */
static const uint8_t cfa_above_sp[] = {DW_CFA_def_cfa, CPU_SP, 16};

/* Whatever the rule of the CFA is. On x86-64, which has no link register, nothing is checked. */
TEST(without_a_rule_the_return_address_is_in_the_link_register)
{
	const struct rule *rule;
	const struct rows *rows;
	struct cfi *cfi;

	cfi = compile(cfa_in_scratch, sizeof(cfa_in_scratch), &rows);
	rule = rows_find(rows, CODE + 8);
	if (CPU_LINK_REGISTER) {
		ck_assert_int_eq(rule->cfa, RULE_CFA_FULL);
		ck_assert_uint_eq(rows->n_full, 1);
		ck_assert_int_eq(rows->full[0].regs[CPU_RA].kind, REG_SAME);
		ck_assert_int_eq(rows->full[0].regs[SCRATCH].kind, REG_UNDEFINED);
	}
	cfi_free(cfi);
	cfi = compile(cfa_above_sp, sizeof(cfa_above_sp), &rows);
	rule = rows_find(rows, CODE + 8);
	if (CPU_LINK_REGISTER) {
		ck_assert_int_eq(rule->cfa, RULE_CFA_SP);
		ck_assert_int_eq(rule->cfa_offset, 16);
		ck_assert_int_eq(rule->ra, RULE_RA_SAME);
	}
	cfi_free(cfi);
}

/*
 * The CFI of glibc's lazy binding says that the return address is above the CFA, since it forgets
 * that the PLT has pushed it.
 */
TEST(the_cfa_is_above_the_return_address_that_the_plt_has_pushed)
{
	const uint8_t instructions[] = {
		DW_CFA_def_cfa, CPU_SP, 0xd0, 0x01 /* 208 */, DW_CFA_offset_extended_sf,
		CPU_RA,		0x7f /* -1 */};
	const struct rule *rule;
	const struct rows *rows;
	struct cfi *cfi;

	cfi = compile(instructions, sizeof(instructions), &rows);
	rule = rows_find(rows, CODE + 8);
	ck_assert_int_eq(rule->ra, RULE_RA_SAVED);
	ck_assert_int_eq(rule->cfa_offset, CPU_LINK_REGISTER ? 208 + 16 : 208);
	ck_assert_int_eq(rule->ra_offset, CPU_LINK_REGISTER ? -8 : 8);
	cfi_free(cfi);
}

/* As the fuzzers may find it: the sum of the largest offset and the two words is no int32_t. */
TEST(the_largest_offset_of_a_cfa_is_not_moved)
{
	const uint8_t instructions[] = {DW_CFA_def_cfa, CPU_SP, 0xff, 0xff,
					0xff,		0xff,	0x07, DW_CFA_offset_extended_sf,
					CPU_RA,		0x7f /* -1 */};
	const struct rule *rule;
	const struct rows *rows;
	struct cfi *cfi;

	cfi = compile(instructions, sizeof(instructions), &rows);
	rule = rows_find(rows, CODE + 8);
	ck_assert_int_eq(rule->ra, RULE_RA_SAVED);
	ck_assert_int_eq(rule->cfa_offset, INT32_MAX);
	ck_assert_int_eq(rule->ra_offset, 8);
	cfi_free(cfi);
}

/* On both processors. */
TEST(the_return_address_may_be_below_a_cfa_in_another_register)
{
	const uint8_t instructions[] = {DW_CFA_def_cfa, SCRATCH, 0, DW_CFA_offset | CPU_RA, 1};
	const struct rows *rows;
	struct cfi *cfi;

	cfi = compile(instructions, sizeof(instructions), &rows);
	ck_assert_int_eq(rows_find(rows, CODE + 8)->cfa, RULE_CFA_FULL);
	ck_assert_uint_eq(rows->n_full, 1);
	ck_assert_int_eq(rows->full[0].regs[CPU_RA].kind, REG_SAVED);
	ck_assert_int_eq(rows->full[0].regs[CPU_RA].value, -8);
	ck_assert_int_eq(rows_find(rows, CODE + CODE_SIZE)->cfa, RULE_CFA_NONE);
	cfi_free(cfi);
}
