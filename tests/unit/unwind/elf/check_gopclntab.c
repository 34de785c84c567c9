/*
 * Go's table of functions in the layouts of three versions, made by hand. (tests/oracle compares
 * it with .debug_frame at stops of real programs.)
 */
#include "lib/unwind/elf/gopclntab.h"

#include <stdlib.h>
#include <string.h>

#include "lib/unwind/cpu.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/suite.h"

#define TEXT	   UINT64_C(0x401000)
#define BASE	   UINT64_C(0x400000)
#define BYTES_MAX  512
#define NAMES_AT   80
#define PCS_AT	   120
#define FUNCS_AT   160
#define FUNC_BYTES 44

/* main.main up to 0x30, main.f up to 0x40, and a function without a table. */
static const char names[] = "\0main.main\0main.f\0x";
#define NAME_MAIN 1
#define NAME_F	  11
#define NAME_X	  18

/*
 * Heights. main.main: 0, 0x58 from byte 4 on, 0 in its last byte. main.f: 0; its length exceeds
 * the function's 16 bytes.
 */
static const uint8_t pcs[] = {0, 2, 4, 0xb0, 1, 0x2b, 0xaf, 1, 1, 0, 2, 0x7f, 0};
#define PCS_MAIN 1
#define PCS_F	 10

static const uint32_t magics[] = {0xfffffffa, 0xfffffff0, 0xfffffff1};

static uint8_t bytes[BYTES_MAX];
static size_t size;
/* The address of the code. */
static uint64_t code = TEXT;

static void put(size_t at, uint64_t value, size_t n)
{
	ck_assert_uint_le(at + n, BYTES_MAX);
	memcpy(bytes + at, &value, n);
}

/* Makes the table of functions, and 100 bytes behind it the functions' records. */
static void make(uint32_t magic, uint64_t text)
{
	static const struct {
		uint32_t start, name, sp;
	} functions[] = {
		{0, NAME_MAIN, PCS_MAIN}, {0x30, NAME_F, PCS_F}, {0x40, NAME_X, 0}, {0x48, 0, 0}};
	const bool is_old = magic == magics[0];
	const size_t word = is_old ? 8 : 4;
	size_t at = 24;

	memset(bytes, 0, sizeof(bytes));
	put(0, magic, 4);
	put(6, 1, 1);
	put(7, 8, 1);
	put(8, 3, 8);
	if (!is_old) {
		put(at, text, 8);
		at += 8;
	}
	put(at, NAMES_AT, 8);
	put(at + 24, PCS_AT, 8);
	put(at + 32, FUNCS_AT, 8);
	memcpy(bytes + NAMES_AT, names, sizeof(names));
	memcpy(bytes + PCS_AT, pcs, sizeof(pcs));
	for (size_t i = 0; i < 4; i++) {
		const size_t entry = FUNCS_AT + 2 * i * word;
		const size_t func = 100 + i * FUNC_BYTES;

		put(entry, functions[i].start + (is_old ? code : 0), word);
		if (i == 3)
			break;
		put(entry + word, func, word);
		put(FUNCS_AT + func + word, functions[i].name, 4);
		put(FUNCS_AT + func + word + 12, functions[i].sp, 4);
	}
	size = FUNCS_AT + 100 + 3 * FUNC_BYTES;
}

static void assert_function(const struct gopclntab *t, size_t i, const char *name, uint64_t start,
			    uint64_t end)
{
	struct gopclntab_function f;

	ck_assert(gopclntab_function(t, i, &f));
	ck_assert_uint_eq(f.name_size, strlen(name));
	ck_assert_mem_eq(f.name, name, f.name_size);
	ck_assert_uint_eq(f.start, code + start);
	ck_assert_uint_eq(f.end, code + end);
}

/* The offset of the return address from sp. -1: unknown. */
static int64_t return_address(const struct rows *rows, uint64_t at)
{
	const struct rule *rule = rows_find(rows, TEXT + at);

	if (rule->cfa == RULE_CFA_NONE)
		return -1;
	ck_assert_uint_eq(rule->cfa, RULE_CFA_SP);
	ck_assert_uint_eq(rule->ra, RULE_RA_SAVED);
	ck_assert_uint_eq(rule->fp, RULE_FP_SAME);
	return rule->cfa_offset + rule->ra_offset;
}

TESTS(functions_and_rows_of_all_versions_are_read, array_size(magics))
{
	struct gopclntab t;
	struct rows rows;

	make(magics[_i], TEXT);
	OK(gopclntab_parse(bytes, size, 0, &t));
	ck_assert_uint_eq(t.n, 3);
	assert_function(&t, 0, "main.main", 0, 0x30);
	assert_function(&t, 1, "main.f", 0x30, 0x40);
	assert_function(&t, 2, "x", 0x40, 0x48);
	OK(gopclntab_rows(&t, BASE, &rows));
	ck_assert_int_eq(return_address(&rows, 0), 0);
	ck_assert_int_eq(return_address(&rows, 3), 0);
	ck_assert_int_eq(return_address(&rows, 4), 0x58);
	ck_assert_int_eq(return_address(&rows, 0x2e), 0x58);
	ck_assert_int_eq(return_address(&rows, 0x2f), 0);
	ck_assert_int_eq(return_address(&rows, 0x30), 0);
	ck_assert_int_eq(return_address(&rows, 0x3f), 0);
	ck_assert_int_eq(return_address(&rows, 0x40), -1);
	ck_assert_int_eq(return_address(&rows, 0x48), -1);
	rows_fini(&rows);
}

/* In a PIE the dynamic linker writes the address of the code into the table. */
TEST(a_missing_address_of_the_code_is_replaced_by_text)
{
	struct gopclntab t;

	make(magics[2], 0);
	OK(gopclntab_parse(bytes, size, TEXT, &t));
	assert_function(&t, 1, "main.f", 0x30, 0x40);
}

/* Files made by hand: sections, of which the first is at FUZZ_SECTIONS_AT. */
#define DATA_MAX 4096
/* Where the table is in a section with other data. */
#define TABLE_AT 0x208
/* Within the segment of fuzz_elf(). */
#define CODE_IN_FILE 0x8000
/* The offset of the address of the code in the table, and in the description of the module. */
#define TEXT_AT	  24
#define MODULE_AT (22 * 8)

static int open_table(const struct fuzz_section *sections, size_t n, struct gopclntab *ret)
{
	int fd = fuzz_elf(sections, n);
	struct elf_file f;
	int r;

	OK(elf_file_open(&f, fd));
	r = gopclntab_open(&f, ret);
	elf_file_close(&f);
	close_fd(&fd);
	return r;
}

static struct fuzz_section section(const char *name, const void *contents, size_t n)
{
	return (struct fuzz_section){
		.name = name, .type = SHT_PROGBITS, .bytes = contents, .size = n};
}

/*
 * The contents of .data.rel.ro in a PIE with cgo: other data, also some that begins as a table, and
 * the table.
 */
static const uint8_t *make_data(uint32_t magic, size_t *ret_size)
{
	static uint8_t data[DATA_MAX];

	memset(data, 0x55, sizeof(data));
	make(magic, 0);
	/* No table: its functions are no code. */
	put(8, 1, 8);
	memcpy(data + 8, bytes, size / 2);
	make(magic, 0);
	memcpy(data + TABLE_AT, bytes, size);
	*ret_size = TABLE_AT + size;
	return data;
}

TESTS(a_table_without_a_section_of_its_own_is_found, array_size(magics))
{
	Elf64_Rela rela[] = {
		{1, R_X86_64_RELATIVE, 1},
		{FUZZ_SECTIONS_AT + TABLE_AT + TEXT_AT, R_X86_64_RELATIVE, CODE_IN_FILE},
	};
	struct fuzz_section sections[3];
	const uint8_t *data;
	struct gopclntab t;
	size_t n;

	code = CODE_IN_FILE;
	data = make_data(magics[_i], &n);
	sections[0] = section(".data.rel.ro", data, n);
	sections[1] = section(".rela.dyn", rela, sizeof(rela));
	sections[2] = section(".go.buildinfo", "x", 1);
	OK(open_table(sections, 3, &t));
	ck_assert_uint_eq(t.n, 3);
	assert_function(&t, 0, "main.main", 0, 0x30);
	assert_function(&t, 1, "main.f", 0x30, 0x40);
	gopclntab_close(&t);
	/* Only in files of Go. */
	ck_assert_int_eq(open_table(sections, 2, &t), -ENODATA);
	/* The functions of a table are code. */
	code = UINT64_C(1) << 40;
	rela[1].r_addend = INT64_C(1) << 40;
	(void)make_data(magics[_i], &n);
	ck_assert_int_eq(open_table(sections, 3, &t), -ENODATA);
	code = TEXT;
}

/* Go 1.26, whose table lacks the address of the code. In a PIE the dynamic linker writes it. */
TESTS(the_address_of_the_code_is_in_the_description_of_the_module, 3)
{
	const bool is_pie = _i == 1, is_of_another_table = _i == 2;
	const uint64_t module_at = align_up(FUZZ_SECTIONS_AT + sizeof(bytes), 8);
	const Elf64_Rela rela[] = {
		{module_at + MODULE_AT, R_X86_64_RELATIVE, CODE_IN_FILE},
		{module_at, R_X86_64_RELATIVE, FUZZ_SECTIONS_AT},
	};
	uint64_t module[64] = {0};
	const struct fuzz_section sections[] = {
		section(".gopclntab", bytes, sizeof(bytes)),
		section(".go.module", module, sizeof(module)),
		section(".rela.dyn", rela, is_pie ? sizeof(rela) : 0),
	};
	struct gopclntab t;

	make(magics[2], 0);
	code = CODE_IN_FILE;
	if (!is_pie) {
		module[0] = FUZZ_SECTIONS_AT + (is_of_another_table ? 8 : 0);
		module[MODULE_AT / 8] = CODE_IN_FILE;
	}
	ck_assert_int_eq(open_table(sections, 3, &t), is_of_another_table ? -ENODATA : 0);
	if (!is_of_another_table) {
		assert_function(&t, 1, "main.f", 0x30, 0x40);
		gopclntab_close(&t);
	}
	code = TEXT;
}

/* A function that points outside of the table is left out; others stay. */
TEST(malformed_functions_and_tables_are_left_out)
{
	struct gopclntab_function f;
	struct gopclntab t;
	struct rows rows;

	make(magics[1], TEXT);
	put(FUNCS_AT + 4, 0xfffffff0, 4); /* the record of main.main */
	OK(gopclntab_parse(bytes, size, 0, &t));
	ck_assert(!gopclntab_function(&t, 0, &f));
	ck_assert(gopclntab_function(&t, 1, &f));
	OK(gopclntab_rows(&t, BASE, &rows));
	ck_assert_int_eq(return_address(&rows, 0), -1);
	ck_assert_int_eq(return_address(&rows, 0x30), 0);
	rows_fini(&rows);

	make(0xfffffffb, TEXT);
	ck_assert_int_eq(gopclntab_parse(bytes, size, 0, &t), -ENODATA);
	make(magics[1], TEXT);
	put(8, 1000, 8);
	ck_assert_int_eq(gopclntab_parse(bytes, size, 0, &t), -ENODATA);
	put(8, UINT64_MAX, 8);
	ck_assert_int_eq(gopclntab_parse(bytes, size, 0, &t), -ENODATA);
}

/* The memory ends with the table, so that AddressSanitizer reports each read behind it. */
TESTS(no_byte_behind_the_end_of_the_table_is_read, array_size(magics))
{
	size_t whole;

	make(magics[_i], TEXT);
	whole = size;
	for (size_t n = 1; n < whole; n++) {
		uint8_t *copy = malloc(n);
		struct gopclntab t;
		struct rows rows;

		ck_assert_ptr_nonnull(copy);
		memcpy(copy, bytes, n);
		if (gopclntab_parse(copy, n, 0, &t) == 0) {
			OK(gopclntab_rows(&t, BASE, &rows));
			rows_fini(&rows);
		}
		free(copy);
	}
}
