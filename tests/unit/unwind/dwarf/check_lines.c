/*
 * Compares this program's lines and inlined functions with what libdw finds in the whole file;
 * and reads malformed debug information.
 */
#include "lib/unwind/dwarf/lines.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "lib/unwind/dwarf/lines_check.h"
#include "lib/unwind/dwarf/lines_source.h"
#include "lib/unwind/dwarf/lines_unit.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/random.h"
#include "tests/unit/suite.h"
#include "tests/unit/unwind/record.h"

#define ADDRESSES    5000
#define BROKEN_FILES 150
#define BROKEN_BYTES 40

/* steps of each function in tests/targets/nested.c */
#define NESTED_STEPS 80

/* Addresses of a file made by hand, and its abbreviations. */
#define HOSTILE_AT	 0x1000u
#define HOSTILE_SIZE	 0x100u
#define HOSTILE_UNIT	 1
#define HOSTILE_FUNCTION 2
#define HOSTILE_INLINE	 3
#define HOSTILE_RANGE	 DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, 0, 0
/* The capacity of the first array of ranges. */
#define HOSTILE_INLINED 64
#define HOSTILE_BYTES	1024

static int fd;
static struct elf_file f;
static struct lines *lines;
static uint64_t text, text_size;

static void set_up(void)
{
	GElf_Shdr shdr;

	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	OK(elf_file_open(&f, fd));
	ck_assert(elf_file_section(&f, ".text", &shdr) != NULL);
	text = shdr.sh_addr;
	text_size = shdr.sh_size;
	OK(lines_open(&f, NULL, &lines));
	ck_assert_ptr_nonnull(lines);
}

static void tear_down(void)
{
	lines_free(lines);
	elf_file_close(&f);
	close_fd(&fd);
}

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static const char *file_of_call(Dwarf_Die *unit, Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Word index;
	Dwarf_Files *files;
	size_t n;

	OK(dwarf_getsrcfiles(unit, &files, &n));
	OK(dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &attr), &index));
	return dwarf_filesrc(files, index, NULL, NULL);
}

/* Compares the lines of addr. Returns true if functions are inlined there. */
static bool compare(Dwarf *dwarf, uint64_t addr)
{
	struct unwind_line found[UNWIND_LINES_MAX];
	size_t n = lines_find(lines, addr, found), k = 0;
	Dwarf_Die unit, *innermost = NULL, *scopes = NULL;
	Dwarf_Line *row;
	int n_scopes, line = 0;

	if (!dwarf_addrdie(dwarf, addr, &unit)) {
		ck_assert_uint_eq(n, 0);
		return false;
	}
	ck_assert_uint_ge(n, 1);
	row = dwarf_getsrc_die(&unit, addr);
	if (row)
		OK(dwarf_lineno(row, &line));
	ck_assert_uint_eq(found[0].line, (uint32_t)line);
	ck_assert(same(found[0].file, row ? dwarf_linesrc(row, NULL, NULL) : NULL));
	/* From the innermost out, by the code and not by the source text. */
	n_scopes = dwarf_getscopes(&unit, addr, &innermost);
	if (n_scopes > 0)
		n_scopes = dwarf_getscopes_die(&innermost[0], &scopes);
	free(innermost);
	for (int i = 0; i < n_scopes; i++) {
		int tag = dwarf_tag(&scopes[i]);
		Dwarf_Attribute attr;
		const char *name;

		if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine)
			continue;
		name = dwarf_formstring(dwarf_attr_integrate(&scopes[i], DW_AT_name, &attr));
		ck_assert_uint_lt(k, n);
		ck_assert_msg(same(found[k].function, name), "%lx: %s, not %s", (unsigned long)addr,
			      found[k].function, name);
		k++;
		if (tag == DW_TAG_subprogram)
			break;
		ck_assert_uint_lt(k, n);
		ck_assert(same(found[k].file, file_of_call(&unit, &scopes[i])));
	}
	free(scopes);
	ck_assert_uint_eq(n, k > 0 ? k : 1);
	return n > 1;
}

FIXTURE(set_up, tear_down)

TEST(lines_and_inlined_functions_are_those_of_libdw)
{
	Dwarf *dwarf = dwarf_begin(fd, DWARF_C_READ);
	uint64_t random = 1;
	size_t inlined = 0;

	ck_assert_ptr_nonnull(dwarf);
	for (size_t i = 0; i < ADDRESSES; i++)
		inlined += compare(dwarf, text + random_next(&random) % text_size);
	ck_assert_uint_gt(inlined, 10);
	ck_assert(!lines_is_incomplete(lines));
	dwarf_end(dwarf);
}

TEST(addresses_outside_of_the_file_have_no_lines)
{
	struct unwind_line found[UNWIND_LINES_MAX];

	ck_assert_uint_eq(lines_find(lines, 0, found), 0);
	ck_assert_uint_eq(lines_find(lines, UINT64_MAX, found), 0);
}

/* Each reading of the clock is a second later. */
static uint64_t fast_clock(void)
{
	static uint64_t now;

	return now += NS_PER_SEC;
}

TEST(a_file_that_takes_too_long_is_incomplete)
{
	struct unwind_line found[UNWIND_LINES_MAX];
	struct lines *hasty;

	OK(lines_open(&f, fast_clock, &hasty));
	ck_assert_ptr_nonnull(hasty);
	for (uint64_t at = 0; at < text_size; at += 16)
		(void)lines_find(hasty, text + at, found);
	ck_assert(lines_is_incomplete(hasty));
	lines_free(hasty);
}

/* lines_source.too_large reports it. */
TEST(sections_above_the_limit_are_not_read)
{
	struct lines_source source;
	struct lines *none;
	int empty = memfd_create("empty", MFD_CLOEXEC);
	struct elf_file stub;
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr = {0};

	OK(lines_source_open(&source, &f, 100));
	ck_assert_ptr_null(source.dwarf);
	ck_assert(source.too_large);
	lines_source_close(&source);
	/* A file without sections is not incomplete. */
	OK(elf_file_pread(fd, &ehdr, sizeof(ehdr), 0));
	ehdr.e_phoff = sizeof(ehdr);
	ehdr.e_phnum = 1;
	ehdr.e_shoff = 0;
	ehdr.e_shnum = 0;
	ehdr.e_shstrndx = 0;
	ck_assert_int_eq(write(empty, &ehdr, sizeof(ehdr)), sizeof(ehdr));
	ck_assert_int_eq(write(empty, &phdr, sizeof(phdr)), sizeof(phdr));
	OK(elf_file_open(&stub, empty));
	OK(lines_open(&stub, NULL, &none));
	ck_assert_ptr_null(none);
	elf_file_close(&stub);
	close_fd(&empty);
}

static uint8_t *read_whole(size_t *ret_size)
{
	struct stat st;
	uint8_t *bytes;

	OK(fstat(fd, &st));
	*ret_size = (size_t)st.st_size;
	bytes = malloc(*ret_size);
	ck_assert_ptr_nonnull(bytes);
	OK(elf_file_pread(fd, bytes, *ret_size, 0));
	return bytes;
}

/* Replaces the fixture's file by new_fd. */
static void reopen(int new_fd)
{
	GElf_Shdr shdr;

	tear_down();
	fd = new_fd;
	ck_assert_int_ge(fd, 0);
	OK(elf_file_open(&f, fd));
	if (elf_file_section(&f, ".text", &shdr)) {
		text = shdr.sh_addr;
		text_size = shdr.sh_size;
	}
	OK(lines_open(&f, NULL, &lines));
	ck_assert_ptr_nonnull(lines);
}

/*
 * lines_find() gives the inlined calls of the outer function and of both nested
 * ones. dwarf_getscopes() finds no nested function outside the outer one's
 * addresses, so compare() is no help here.
 */
TEST(nested_functions_of_gnu_c_have_their_inlined_functions)
{
	static const char *const names[] = {"outer", "first", "second"};
	struct unwind_line found[UNWIND_LINES_MAX];
	size_t inlined[array_size(names)] = {0};
	char path[PATH_MAX];

	suite_target("nested", path, sizeof(path));
	reopen(open(path, O_RDONLY | O_CLOEXEC));
	for (uint64_t at = 0; at < text_size; at++) {
		size_t n = lines_find(lines, text + at, found);

		if (n < 2)
			continue;
		ck_assert_uint_eq(n, 2);
		ck_assert_str_eq(found[0].function, "step");
		for (size_t i = 0; i < array_size(names); i++)
			inlined[i] += same(found[1].function, names[i]);
	}
	for (size_t i = 0; i < array_size(names); i++)
		ck_assert_uint_ge(inlined[i], NESTED_STEPS);
}

static void put(uint8_t **at, uint64_t value, size_t size)
{
	memcpy(*at, &value, size);
	*at += size;
}

/* An entry for [HOSTILE_AT, HOSTILE_AT + HOSTILE_SIZE). */
static void put_entry(uint8_t **at, uint8_t abbrev)
{
	put(at, abbrev, 1);
	put(at, HOSTILE_AT, 8);
	put(at, HOSTILE_SIZE, 4);
}

/*
 * Writes a unit: an outer function with HOSTILE_INLINED inlined functions, and
 * a nested function without any, all at the same addresses. Returns its size.
 */
static size_t make_hostile(uint8_t bytes[HOSTILE_BYTES])
{
	uint8_t *at = bytes + 4;

	put(&at, 4, 2); /* version */
	put(&at, 0, 4); /* abbreviations */
	put(&at, 8, 1); /* bytes of an address */
	put_entry(&at, HOSTILE_UNIT);
	put_entry(&at, HOSTILE_FUNCTION);
	for (size_t i = 0; i < HOSTILE_INLINED; i++)
		put_entry(&at, HOSTILE_INLINE);
	put_entry(&at, HOSTILE_FUNCTION);
	put(&at, 0, 3); /* the ends of both functions and the unit */
	memcpy(bytes, &(uint32_t){(uint32_t)(at - bytes - 4)}, 4);
	return (size_t)(at - bytes);
}

TEST(a_nested_function_has_none_of_the_outer_one_s_inlined_functions)
{
	static const uint8_t abbrevs[] = {HOSTILE_UNIT,
					  DW_TAG_compile_unit,
					  1,
					  HOSTILE_RANGE,
					  HOSTILE_FUNCTION,
					  DW_TAG_subprogram,
					  1,
					  HOSTILE_RANGE,
					  HOSTILE_INLINE,
					  DW_TAG_inlined_subroutine,
					  0,
					  HOSTILE_RANGE,
					  0};
	uint8_t bytes[HOSTILE_BYTES];
	const struct fuzz_section sections[] = {
		{.name = ".debug_info",
		 .type = SHT_PROGBITS,
		 .bytes = bytes,
		 .size = make_hostile(bytes)},
		{.name = ".debug_abbrev",
		 .type = SHT_PROGBITS,
		 .bytes = abbrevs,
		 .size = sizeof(abbrevs)},
	};
	struct unwind_line found[UNWIND_LINES_MAX];

	reopen(fuzz_elf(sections, array_size(sections)));
	ck_assert_uint_eq(lines_find(lines, HOSTILE_AT, found), 1);
}

#define METHOD_TYPE 4

/* Returns the number of functions at an inlined one in a function, which is inside a type. */
static size_t functions_in_a_type(uint8_t language)
{
	static const uint8_t abbrevs[] = {HOSTILE_UNIT,
					  DW_TAG_compile_unit,
					  1,
					  DW_AT_language,
					  DW_FORM_data1,
					  HOSTILE_RANGE,
					  HOSTILE_FUNCTION,
					  DW_TAG_subprogram,
					  1,
					  HOSTILE_RANGE,
					  HOSTILE_INLINE,
					  DW_TAG_inlined_subroutine,
					  0,
					  HOSTILE_RANGE,
					  METHOD_TYPE,
					  DW_TAG_structure_type,
					  1,
					  0,
					  0,
					  0};
	uint8_t bytes[HOSTILE_BYTES];
	uint8_t *at = bytes + 4;
	struct fuzz_section sections[] = {
		{.name = ".debug_info", .type = SHT_PROGBITS, .bytes = bytes},
		{.name = ".debug_abbrev",
		 .type = SHT_PROGBITS,
		 .bytes = abbrevs,
		 .size = sizeof(abbrevs)},
	};
	struct unwind_line found[UNWIND_LINES_MAX];

	put(&at, 4, 2); /* version */
	put(&at, 0, 4); /* abbreviations */
	put(&at, 8, 1); /* bytes of an address */
	put(&at, HOSTILE_UNIT, 1);
	put(&at, language, 1);
	put(&at, HOSTILE_AT, 8);
	put(&at, HOSTILE_SIZE, 4);
	put(&at, METHOD_TYPE, 1);
	put_entry(&at, HOSTILE_FUNCTION);
	put_entry(&at, HOSTILE_INLINE);
	put(&at, 0, 3); /* the ends of the function, the type and the unit */
	sections[0].size = (size_t)(at - bytes);
	memcpy(bytes, &(uint32_t){(uint32_t)sections[0].size - 4}, 4);
	reopen(fuzz_elf(sections, array_size(sections)));
	return lines_find(lines, HOSTILE_AT, found);
}

/* rustc before 1.69 describes methods in this way. The types of C++ are not searched. */
TEST(methods_of_rust_may_be_inside_their_types)
{
	ck_assert_uint_eq(functions_in_a_type(DW_LANG_Rust), 2);
	ck_assert_uint_eq(functions_in_a_type(DW_LANG_C_plus_plus_14), 1);
}

/* For each range of a function, also a malformed one. */
TEST(inlined_functions_stay_within_the_array)
{
	struct lines_range v[3] = {{0}};
	const struct lines_unit u = {.inlined = {.v = v, .n = 3, .cap = 3}};
	const struct lines_unit empty = {0};
	const struct {
		uint32_t first, n;
		size_t expected;
	} cases[] = {
		{0, 3, 3},
		{0, 0, 0},
		{1, 2, 2},
		{1, 3, 2},
		{3, 1, 0},
		{4, 1, 0},
		{UINT32_MAX, UINT32_MAX, 0},
	};

	for (size_t i = 0; i < array_size(cases); i++) {
		const struct lines_range function = {.first = cases[i].first, .n = cases[i].n};
		struct lines_slice s = lines_unit_inlined(&u, &function);

		ck_assert_uint_eq(s.n, cases[i].expected);
		if (s.n > 0)
			ck_assert_ptr_eq(s.v, v + cases[i].first);
		s = lines_unit_inlined(&empty, &function);
		ck_assert_uint_eq(s.n, 0);
	}
}

TESTS(damaged_sections_give_valid_lines_or_none, BROKEN_FILES)
{
	static const char *const names[] = {".debug_info", ".debug_abbrev",   ".debug_line",
					    ".debug_str",  ".debug_rnglists", ".debug_line_str"};
	GElf_Shdr shdr;
	uint64_t random = (uint64_t)_i + 1;
	size_t size;
	uint8_t *bytes = read_whole(&size);
	const char *name = names[(size_t)_i % array_size(names)];
	int copy = memfd_create("broken", MFD_CLOEXEC);
	struct unwind_line found[UNWIND_LINES_MAX];
	struct elf_file broken;
	struct lines *l = NULL;

	ck_assert_int_ge(copy, 0);
	if (!elf_file_section(&f, name, &shdr) || shdr.sh_size == 0)
		goto out;
	/* The first bytes have the offsets of all others. */
	for (size_t i = 0; i < BROKEN_BYTES; i++) {
		uint64_t range = i % 2 ? shdr.sh_size : min_u64(shdr.sh_size, 256);

		bytes[shdr.sh_offset + random_next(&random) % range] =
			(uint8_t)random_next(&random);
	}
	ck_assert_int_eq(write(copy, bytes, size), (ssize_t)size);
	OK(elf_file_open(&broken, copy));
	OK(lines_open(&broken, NULL, &l));
	for (size_t i = 0; i < 300 && l; i++) {
		size_t n = lines_find(l, text + random_next(&random) % text_size, found);

		ck_assert_uint_le(n, UNWIND_LINES_MAX);
		for (size_t k = 0; k < n; k++) {
			if (found[k].function)
				(void)strlen(found[k].function);
			if (found[k].file)
				(void)strlen(found[k].file);
		}
	}
	elf_file_close(&broken);
	lines_free(l);
out:
	free(bytes);
	close_fd(&copy);
}

#define TABLE_MAX (LINES_PROGRAM_MAX + 1024u)

/* A line table of version 5: a directory, two files, and line 7 for all addresses of the unit. */
static void make_table(uint8_t bytes[TABLE_MAX], uint32_t length)
{
	uint8_t *at = bytes, *names;

	memset(bytes, DW_LNS_negate_stmt, TABLE_MAX);
	put(&at, length, 4);
	put(&at, 5, 2); /* version */
	put(&at, 8, 2); /* bytes of an address, of a selector */
	at += 4;	/* the length of what follows up to the program */
	names = at;
	put(&at, 0x010101, 3); /* bytes and operations of an instruction, default_is_stmt */
	put(&at, 0x0d0efb, 3); /* line_base, line_range, opcode_base */
	put(&at, UINT64_C(0x0000000101010100), 8);
	put(&at, 0x01000001, 4);
	put(&at, 1 | DW_LNCT_path << 8 | DW_FORM_string << 16, 3);
	put(&at, 1 | 'd' << 8, 3);
	put(&at, 2 | DW_LNCT_path << 8 | DW_FORM_string << 16, 3);
	put(&at, DW_LNCT_directory_index | DW_FORM_udata << 8, 2);
	put(&at, 2 | 'a' << 8, 4);
	put(&at, 'b', 3);
	memcpy(names - 4, &(uint32_t){(uint32_t)(at - names)}, 4);
	put(&at, 0 | 9 << 8 | DW_LNE_set_address << 16, 3);
	put(&at, HOSTILE_AT, 8);
	put(&at, DW_LNS_advance_line | 6 << 8 | DW_LNS_copy << 16, 3);
	put(&at, DW_LNS_fixed_advance_pc | HOSTILE_SIZE << 8, 3);
	put(&at, 0 | 1 << 8 | DW_LNE_end_sequence << 16, 3);
}

/* A unit whose line table is the first. */
static void make_unit(uint8_t info[28])
{
	uint8_t *at = info;

	put(&at, 28 - 4, 4);
	put(&at, 4, 2); /* version */
	put(&at, 0, 4); /* abbreviations */
	put(&at, 8 | HOSTILE_UNIT << 8, 2);
	put(&at, 0, 4); /* line table */
	put(&at, HOSTILE_AT, 8);
	put(&at, HOSTILE_SIZE, 4);
}

/* Opens a file with a unit whose line table is this one. */
static void reopen_with(const uint8_t *table, size_t size)
{
	static const uint8_t abbrevs[] = {
		HOSTILE_UNIT,	    DW_TAG_compile_unit, 0, DW_AT_stmt_list,
		DW_FORM_sec_offset, HOSTILE_RANGE,	 0};
	uint8_t info[28];
	const struct fuzz_section sections[] = {
		{.name = ".debug_info", .type = SHT_PROGBITS, .bytes = info, .size = sizeof(info)},
		{.name = ".debug_abbrev",
		 .type = SHT_PROGBITS,
		 .bytes = abbrevs,
		 .size = sizeof(abbrevs)},
		{.name = ".debug_line", .type = SHT_PROGBITS, .bytes = table, .size = size},
	};

	make_unit(info);
	reopen(fuzz_elf(sections, array_size(sections)));
}

TEST(libdw_decodes_no_line_table_that_the_check_refuses)
{
	static const struct {
		uint32_t length;
		bool is_good;
	} cases[] = {
		{100, true},
		{LINES_PROGRAM_MAX, true},
		{LINES_PROGRAM_MAX + 1, false},
	};
	static uint8_t table[TABLE_MAX];
	struct unwind_line found[UNWIND_LINES_MAX];

	for (size_t i = 0; i < array_size(cases); i++) {
		make_table(table, cases[i].length);
		reopen_with(table, sizeof(table));
		ck_assert_uint_eq(lines_find(lines, HOSTILE_AT + 1, found), 1);
		ck_assert_uint_eq(found[0].line, cases[i].is_good ? 7 : 0);
		ck_assert(same(found[0].file, cases[i].is_good ? "d/b" : NULL));
	}
}

/* A line table of version 5 with no directories and no files. */
static const uint8_t good[] = {18, 0, 0, 0, 5,	 0,  8, 0, 10, 0, 0,
			       0,  1, 1, 1, 251, 14, 1, 0, 0,  0, 0};

/* Checks a table at this offset of .debug_line. */
static bool check_at(const uint8_t *bytes, size_t size, uint64_t offset)
{
	const struct lines_bytes sections[LINES_SECTION_N] = {[LINES_LINE] = {bytes, size}};
	uint64_t paths;

	return lines_check_program(sections, offset, 0, LINES_PATHS_MAX, &paths);
}

TEST(malformed_line_tables_are_refused)
{
	uint8_t bytes[sizeof(good)], beyond[2 * sizeof(good)] = {0};

	ck_assert(check_at(good, sizeof(good), 0));
	for (size_t n = 0; n < sizeof(good); n++)
		ck_assert(!check_at(good, n, 0));
	ck_assert(!check_at(NULL, 0, 0));
	ck_assert(!check_at(good, sizeof(good), 1));
	ck_assert(!check_at(good, sizeof(good), sizeof(good)));
	ck_assert(!check_at(good, sizeof(good), UINT64_MAX));
	/* What is behind the section is not read. */
	memcpy(beyond + sizeof(good), good, sizeof(good));
	ck_assert(!check_at(beyond, sizeof(good) - 1, sizeof(good)));
	/* A header that ends behind the table, or before its directories. */
	for (unsigned int length = 0; length <= UINT8_MAX; length++) {
		memcpy(bytes, good, sizeof(good));
		bytes[8] = (uint8_t)length;
		ck_assert_int_eq(check_at(bytes, sizeof(good), 0), length >= 6 && length <= 10);
	}
	memset(bytes + 8, 0xff, 4);
	ck_assert(!check_at(bytes, sizeof(good), 0));
	/* Other opcodes than there are bytes for. */
	for (unsigned int n = 0; n <= UINT8_MAX; n++) {
		memcpy(bytes, good, sizeof(good));
		bytes[17] = (uint8_t)n;
		ck_assert_int_eq(check_at(bytes, sizeof(good), 0), n == 1);
	}
}

/* Writes the beginning of a table up to its directories. finish_table() sets both lengths. */
static uint8_t *begin_table(uint8_t *at, unsigned int version)
{
	put(&at, 0, 4);
	put(&at, version, 2);
	if (version >= 5)
		put(&at, 8, 2); /* bytes of an address, of a selector */
	put(&at, 0, 4);
	put(&at, 0x010101, 3); /* bytes and operations of an instruction, default_is_stmt */
	put(&at, 0x010efb, 3); /* line_base, line_range, opcode_base */
	return at;
}

/* Returns the size. program: where the header ends. */
static size_t finish_table(uint8_t *table, const uint8_t *program, const uint8_t *end)
{
	const size_t length_at = table[4] >= 5 ? 8 : 6;

	memcpy(table, &(uint32_t){(uint32_t)(end - table - 4)}, 4);
	memcpy(table + length_at,
	       &(uint32_t){(uint32_t)((size_t)(program - table) - length_at - 4)}, 4);
	return (size_t)(end - table);
}

#define LONG_NAME  (1u << 20)
#define MANY_FILES 150000u
/* A name and three numbers. */
#define OLD_FILE UINT64_C(0x0000010061)

/* A table of version 4 with a directory and files in it, of which the program defines one. */
static size_t make_old_table(uint8_t *table, size_t length, size_t n_files)
{
	uint8_t *at = begin_table(table, 4), *program;

	memset(at, 'd', length);
	at += length;
	put(&at, 0, 2);
	for (size_t i = 1; i < n_files; i++)
		put(&at, OLD_FILE, 5);
	put(&at, 0, 1);
	program = at;
	put(&at, 0 | 6 << 8 | DW_LNE_define_file << 16, 3);
	put(&at, OLD_FILE, 5);
	return finish_table(table, program, at);
}

/* Version 5: the names are at the beginning of .debug_line_str. */
static size_t make_new_table(uint8_t *table, size_t n_directories, size_t n_files)
{
	uint8_t *at = begin_table(table, 5);

	put(&at, 1 | DW_LNCT_path << 8 | DW_FORM_line_strp << 16, 3);
	put(&at, 0x80 | n_directories % 128 | (n_directories >> 7) << 8, 2);
	for (size_t i = 0; i < n_directories; i++)
		put(&at, 0, 4);
	put(&at, 3 | DW_LNCT_path << 8 | DW_FORM_line_strp << 16, 3);
	put(&at, DW_LNCT_directory_index | DW_FORM_udata << 8, 2);
	put(&at, DW_LNCT_MD5 | DW_FORM_data16 << 8, 2);
	put(&at, 0x80 | n_files % 128 | (n_files >> 7) << 8, 2);
	for (size_t i = 0; i < n_files; i++) {
		put(&at, 0, 4);
		put(&at, 0, 1);
		put(&at, 0, 8);
		put(&at, 0, 8);
	}
	return finish_table(table, at, at);
}

/* The memory of the paths, as far as it is within max. */
static uint64_t paths_of(const uint8_t *table, size_t size, const char *names, size_t names_size,
			 size_t comp_dir, size_t max)
{
	const struct lines_bytes sections[LINES_SECTION_N] = {
		[LINES_LINE] = {table, size},
		[LINES_LINE_STR] = {(const uint8_t *)names, names_size},
	};
	uint64_t paths = 0;

	ck_assert(lines_check_program(sections, 0, comp_dir, max, &paths));
	return paths;
}

TEST(each_path_counts_with_its_directory)
{
	static uint8_t table[2 * LINES_PROGRAM_MAX];
	static char names[LONG_NAME];
	size_t n = make_old_table(table, 9, 7);

	ck_assert_uint_eq(paths_of(table, n, NULL, 0, 0, SIZE_MAX), 10 + 7 * (10 + 2));
	ck_assert_uint_eq(paths_of(table, n, NULL, 0, 30, SIZE_MAX), 10 + 7 * (31 + 2));
	memset(names, 'n', sizeof(names) - 1);
	n = make_new_table(table, 1, 1);
	ck_assert_uint_eq(paths_of(table, n, names + LONG_NAME - 5, 5, 0, SIZE_MAX), 5 + 5 + 5);
	/* A name that does not end within the section. */
	ck_assert_uint_eq(paths_of(table, n, names, 5, 0, SIZE_MAX), 6 + 6 + 6);
	/* The names are outside. */
	ck_assert_uint_eq(paths_of(table, n, NULL, 0, 0, SIZE_MAX), 1 + 1 + 1);
	/* Above the limit the rest is not read. */
	n = make_new_table(table, 16000, 16000);
	ck_assert_uint_gt(paths_of(table, n, names, LONG_NAME, 0, 3 * LONG_NAME), 3 * LONG_NAME);
	ck_assert_uint_lt(paths_of(table, n, names, LONG_NAME, 0, 3 * LONG_NAME), 5 * LONG_NAME);
}

TEST(libdw_makes_no_paths_above_the_limit)
{
	static uint8_t table[LINES_PROGRAM_MAX];
	struct unwind_line found[UNWIND_LINES_MAX];

	reopen_with(table, make_old_table(table, LONG_NAME, MANY_FILES));
	ck_assert_uint_eq(lines_find(lines, HOSTILE_AT, found), 1);
	ck_assert_ptr_null(found[0].file);
	ck_assert(lines_is_incomplete(lines));
}

TEST(abbreviations_are_measured_up_to_a_limit)
{
	/* Code 1, a compile unit with children, a name; the end. */
	static const uint8_t bytes[] = {1, 17, 1, 3, 8, 0, 0, 0, 9, 9};

	ck_assert_uint_eq(lines_check_abbrevs(bytes, sizeof(bytes), 0, 100), 8);
	ck_assert_uint_eq(lines_check_abbrevs(bytes, sizeof(bytes), 7, 100), 1);
	ck_assert_uint_le(lines_check_abbrevs(bytes, sizeof(bytes), 8, 100), 2);
	ck_assert_uint_eq(lines_check_abbrevs(bytes, sizeof(bytes), 99, 100), 0);
	ck_assert_uint_eq(lines_check_abbrevs(NULL, 0, 0, 100), 0);
	/* Only as many bytes as max are read: here one entry. */
	ck_assert_uint_eq(lines_check_abbrevs(bytes, sizeof(bytes), 0, 1), 7);
}
