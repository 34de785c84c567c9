/*
 * Tests with sections made by hand, which are malformed or have overlapping functions. The function
 * that covers an address must not depend on earlier look-ups or on other entries. Each function has
 * another CFA offset.
 */
#include "lib/unwind/dwarf/cfi_source.h"

#include <dwarf.h>
#include <elf.h>
#include <string.h>

#include "lib/unwind/cpu.h"
#include "lib/unwind/dwarf/cfi.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/suite.h"

#define BASE 0x1000

/* the program of a function */
#define FUNCTION_MAX (130u << 10)

struct section {
	uint8_t bytes[FUNCTION_MAX + 1024];
	size_t n;
	bool is_debug;
	bool is_64_bit;
};

/* [start, end) relative to BASE, with a CFA offset that no other function has */
struct function {
	uint16_t start;
	uint16_t end;
	uint8_t cfa;
};

/* The CFA offset of the function that must cover pc (relative to BASE); 0: none. */
struct expected {
	uint16_t pc;
	uint8_t cfa;
};

static void put(struct section *s, const void *bytes, size_t n)
{
	ck_assert_uint_le(n, sizeof(s->bytes) - s->n);
	memcpy(s->bytes + s->n, bytes, n);
	s->n += n;
}

static void put_number(struct section *s, uint64_t value, size_t size)
{
	put(s, &value, size);
}

/* Begins an entry, whose length end() writes. id is as in .debug_frame. */
static size_t begin(struct section *s, uint64_t id)
{
	size_t at = s->n;

	put_number(s, UINT32_MAX, s->is_64_bit ? 4 : 0);
	put_number(s, 0, s->is_64_bit ? 8 : 4);
	if (!s->is_debug)
		id = id == UINT64_MAX ? 0 : s->n - id;
	put_number(s, id, s->is_64_bit ? 8 : 4);
	return at;
}

static void end(struct section *s, size_t at)
{
	size_t skip = s->is_64_bit ? 4 : 0;
	size_t size = s->is_64_bit ? 8 : 4;
	uint64_t length = s->n - at - skip - size;

	memcpy(s->bytes + at + skip, &length, size);
}

static size_t put_cie(struct section *s, const char *augmentation, uint8_t encoding)
{
	size_t at = begin(s, UINT64_MAX);

	put_number(s, 1, 1);
	put(s, augmentation, strlen(augmentation) + 1);
	put(s, (uint8_t[]){1, 0x78, CPU_RA}, 3);
	if (*augmentation == 'z')
		put(s, (uint8_t[]){1, encoding}, 2);
	put(s, (uint8_t[]){DW_CFA_def_cfa, CPU_SP, 8, DW_CFA_offset | CPU_RA, 1}, 5);
	end(s, at);
	return at;
}

static void put_fde(struct section *s, size_t cie, const struct function *f, size_t width)
{
	size_t at = begin(s, cie);

	put_number(s, BASE + f->start, width);
	put_number(s, f->end - f->start, width);
	put_number(s, 0, 1);
	put(s, (uint8_t[]){DW_CFA_def_cfa_offset, f->cfa}, 2);
	end(s, at);
}

static void expect_at(const struct rows *rows, const struct expected *e)
{
	const struct rule *rule = rows_find(rows, BASE + e->pc);

	ck_assert_msg(
		(e->cfa == 0 && rule->cfa == RULE_CFA_NONE) ||
			(e->cfa != 0 && rule->cfa == RULE_CFA_SP && rule->cfa_offset == e->cfa),
		"at %#x: %d %d, not %d", e->pc, rule->cfa, rule->cfa_offset, e->cfa);
}

#define SECTIONS_MAX 2

static int make_file(const struct section *v, size_t n_sections)
{
	struct fuzz_section sections[SECTIONS_MAX] = {{0}};

	for (size_t i = 0; i < n_sections; i++)
		sections[i] = (struct fuzz_section){
			.name = v[i].is_debug ? ".debug_frame" : ".eh_frame",
			.type = SHT_PROGBITS,
			.bytes = v[i].bytes,
			.size = v[i].n,
		};
	return fuzz_elf(sections, n_sections);
}

/*
 * Checks that the sections give the expected rules: compiled in one part and in parts of one
 * function, and looked up in either order.
 */
static void expect(const struct section *v, size_t n_sections, const struct expected *e, size_t n)
{
	int fd = make_file(v, n_sections);
	struct elf_file f;
	struct cfi *cfi;

	OK(elf_file_open(&f, fd));
	for (int how = 0; how < 4; how++) {
		OK(cfi_open_parts(&f, 0, how & 1 ? 1 : 100, &cfi));
		for (size_t i = 0; i < n; i++) {
			const struct expected *x = &e[how & 2 ? n - 1 - i : i];

			expect_at(cfi_rows(cfi, BASE + x->pc), x);
		}
		cfi_free(cfi);
	}
	elf_file_close(&f);
	close_fd(&fd);
}

#define ENTRY(encoding, width) encoding, BASE, width, 0x1000, width

/* Malformed entries. If they were read, each would cover the addresses of others. */
static const struct malformed {
	const char *augmentation;
	uint8_t encoding;
	uint64_t start;
	uint8_t start_size;
	uint64_t range;
	uint8_t range_size;
	uint8_t tail[2];
	uint8_t tail_size;
} malformed[] = {
	{"zR", ENTRY(DW_EH_PE_indirect | DW_EH_PE_udata8, 8), {0}, 1},
	{"zR", ENTRY(DW_EH_PE_datarel | DW_EH_PE_udata8, 8), {0}, 1},
	{"zR", ENTRY(0x05, 8), {0}, 1},
	/* 0x1000 for both; linkers do not write addresses so */
	{"zR", DW_EH_PE_uleb128, 0x2080, 2, 0x2080, 2, {0}, 1},
	/* less than half, nothing of the range, nothing behind it */
	{"zR", DW_EH_PE_udata8, BASE, 4, 0, 0, {0}, 0},
	{"zR", DW_EH_PE_udata8, BASE, 8, 0, 0, {0}, 1},
	{"zR", ENTRY(DW_EH_PE_udata8, 8), {0}, 0},
	/* longer than the entry */
	{"zR", ENTRY(DW_EH_PE_udata8, 8), {0x7f}, 1},
	/* no instruction */
	{"zR", ENTRY(DW_EH_PE_udata8, 8), {0, 0x3f}, 2},
	/* covers nothing, and overflows */
	{"zR", DW_EH_PE_udata8, BASE, 8, 0, 8, {0}, 1},
	{"zR", DW_EH_PE_udata8, BASE, 8, UINT64_MAX, 8, {0}, 1},
	{"zR", DW_EH_PE_sdata4, BASE, 4, UINT32_MAX, 4, {0}, 1},
	{"zX", ENTRY(DW_EH_PE_udata8, 8), {0}, 1},
	/* libdw reads the CIE's program as encodings here */
	{"R", ENTRY(DW_EH_PE_udata8, 8), {0}, 1},
	{"LR", ENTRY(DW_EH_PE_udata8, 8), {0}, 1},
};

static void put_malformed(struct section *s, const struct malformed *m)
{
	size_t at = begin(s, put_cie(s, m->augmentation, m->encoding));

	put_number(s, m->start, m->start_size);
	put_number(s, m->range, m->range_size);
	put(s, m->tail, m->tail_size);
	end(s, at);
}

/* Adds a function whose CIE is its own entry. */
static void put_nowhere(struct section *s)
{
	put_fde(s, s->n, &(struct function){0, 0x1000, 99}, 8);
}

/* At the first look-up. */
TESTS(functions_beside_a_malformed_entry_are_found, array_size(malformed) + 1)
{
	const struct malformed *m = (size_t)_i < array_size(malformed) ? &malformed[_i] : NULL;
	static const struct function before = {0x100, 0x110, 16};
	static const struct function behind = {0x200, 0x210, 24};
	static const struct expected expected[] = {
		{0x200, 24}, {0x20f, 24}, {0x210, 0}, {0x100, 16}, {0xff, 0},
	};

	for (int kind = 0; kind < 4; kind++) {
		struct section s = {.is_debug = kind & 1, .is_64_bit = kind & 2};
		size_t cie = put_cie(&s, "zR", DW_EH_PE_udata8);

		m ? put_malformed(&s, m) : put_nowhere(&s);
		put_fde(&s, cie, &before, 8);
		m ? put_malformed(&s, m) : put_nowhere(&s);
		put_fde(&s, cie, &behind, 8);
		expect(&s, 1, expected, array_size(expected));
	}
}

/* Programs that libdw must not execute. */
static const struct bad_program {
	uint8_t bytes[8];
	size_t size;
} bad_programs[] = {
	/* libdw would allocate rules for 2^28 registers */
	{{DW_CFA_offset_extended, 0xff, 0xff, 0xff, 0x7f, 1}, 6},
	{{DW_CFA_register, 1, 0x80, 1}, 4},
	/* no instruction, and one that no compiler writes */
	{{0x3f}, 1},
	{{DW_CFA_set_loc, 0, 0, 0, 0, 0, 0, 0}, 8},
	/* operands that the program has no bytes for */
	{{DW_CFA_advance_loc4, 1, 0, 0}, 4},
	{{DW_CFA_def_cfa_offset, 0x80}, 2},
	{{DW_CFA_def_cfa_expression, 2, DW_OP_lit0}, 3},
	{{DW_CFA_expression, 1, 0x7f}, 3},
};

/* Adds an entry that is malformed or too long, and a function with it. */
enum unseen { NONE, AUGMENTATION, LONG_CIE, LONG_FDE, DEEP, SLOW, REMEMBERS, BAD, BAD_CIE };

static void put_unseen(struct section *s, enum unseen what, const struct bad_program *bad)
{
	static const struct function f = {0, 0x10, 16};
	uint8_t program[FUNCTION_MAX] = {0};
	size_t n = 0, cie, at;

	/* More encodings than there are bytes: libdw would read on. */
	cie = put_cie(s, what == AUGMENTATION ? "zRLLLLLLLLLLLLLLLLLLL" : "zR", DW_EH_PE_udata8);
	if (what == LONG_CIE) {
		put(s, program, 300);
		end(s, cie);
	}
	if (what == BAD_CIE) {
		put(s, bad->bytes, bad->size);
		end(s, cie);
	}
	if (what == LONG_FDE)
		n = 130 << 10;
	if (what == DEEP)
		memset(program, DW_CFA_remember_state, n = 100);
	/* A row for each byte, each executed from the start. */
	if (what == SLOW)
		memset(program, DW_CFA_advance_loc | 1, n = 64 << 10);
	/* States that are remembered and restored at once, again for each row. */
	if (what == REMEMBERS) {
		n = 16 << 10;
		memset(program, DW_CFA_advance_loc | 1, n);
		for (size_t i = 0; i < n - (4 << 10); i += 2) {
			program[i] = DW_CFA_remember_state;
			program[i + 1] = DW_CFA_restore_state;
		}
	}
	if (what == BAD)
		memcpy(program, bad->bytes, n = bad->size);
	at = begin(s, cie);
	put_number(s, BASE + f.start, 8);
	put_number(s, n + f.end, 8);
	put_number(s, 0, 1);
	put(s, program, n);
	end(s, at);
}

static void expect_unseen(enum unseen what, const struct bad_program *bad)
{
	static struct section s;
	int fd;
	struct cfi_source source;
	struct cfi_function function;
	uint64_t work = UINT64_C(1) << 30;
	struct elf_file f;

	memset(&s, 0, sizeof(s));
	put_unseen(&s, what, bad);
	fd = make_file(&s, 1);
	OK(elf_file_open(&f, fd));
	OK(cfi_source_open(&source, &f, true));
	ck_assert_uint_eq(source.n, what == NONE || what >= DEEP);
	if (source.n > 0)
		ck_assert_int_eq(cfi_function_open(&function, &source, 0, &work),
				 what == NONE ? 0 : -ENODATA);
	if (what == NONE)
		cfi_function_close(&function);
	cfi_source_close(&source);
	elf_file_close(&f);
	close_fd(&fd);
}

TESTS(libdw_gets_no_entry_that_is_malformed_or_too_long, BAD)
{
	expect_unseen((enum unseen)_i, NULL);
}

/* Neither of a function nor of its CIE. */
TESTS(libdw_executes_no_malformed_program, array_size(bad_programs))
{
	expect_unseen(BAD, &bad_programs[_i]);
	expect_unseen(BAD_CIE, &bad_programs[_i]);
}

static const struct overlap {
	struct function v[3];
	const char *whose; /* by 16 bytes: the first, the second, ... */
} overlaps[] = {
	/* one reaches into the next */
	{{{0, 0x80, 16}, {0x40, 0xc0, 24}, {0x100, 0x110, 32}}, "aaaabbbbbbbb----c-"},
	/* one within another; tables do not find the rest of the outer one */
	{{{0, 0x80, 16}, {0x20, 0x30, 24}, {0x60, 0x70, 32}}, "aab---c--"},
	/* three; the last is within the common part of the others */
	{{{0, 0x80, 16}, {0x20, 0xa0, 24}, {0x40, 0x60, 32}}, "aabbcc-----"},
	/* three that end together */
	{{{0, 0x80, 16}, {0x20, 0x80, 24}, {0x40, 0x80, 32}}, "aabbcccc-"},
};

#define OWNERS_MAX 24

static size_t read_owners(const struct overlap *o, struct expected ret[2 * OWNERS_MAX])
{
	size_t n = strlen(o->whose);

	ck_assert_uint_le(n, OWNERS_MAX);
	for (size_t i = 0; i < 2 * n; i++) {
		char c = o->whose[i / 2];

		ret[i].pc = (uint16_t)(i / 2 * 16 + (i % 2 ? 15 : 0));
		ret[i].cfa = c == '-' ? 0 : o->v[c - 'a'].cfa;
	}
	return 2 * n;
}

static const uint8_t orders[][3] = {
	{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0},
};

/* The functions are in any order in the file. */
TESTS(the_last_start_before_an_address_covers_it, array_size(overlaps))
{
	static const struct {
		uint8_t encoding;
		uint8_t width;
	} encodings[] = {
		{DW_EH_PE_absptr, 8}, {DW_EH_PE_udata8, 8}, {DW_EH_PE_udata4, 4},
		{DW_EH_PE_sdata4, 4}, {DW_EH_PE_udata2, 2},
	};
	const struct overlap *o = &overlaps[_i];
	struct expected expected[2 * OWNERS_MAX];
	size_t n = read_owners(o, expected);

	for (size_t i = 0; i < array_size(encodings); i++) {
		for (size_t order = 0; order < array_size(orders); order++) {
			struct section s = {0};
			size_t cie = put_cie(&s, "zR", encodings[i].encoding);

			for (size_t k = 0; k < 3; k++)
				put_fde(&s, cie, &o->v[orders[order][k]], encodings[i].width);
			expect(&s, 1, expected, n);
		}
	}
}

TEST(of_functions_with_one_start_the_first_in_the_file_counts)
{
	static const struct function v[] = {{0, 0x40, 16}, {0, 0x20, 24}, {0, 0x60, 32}};

	for (size_t order = 0; order < array_size(orders); order++) {
		const struct function *first = &v[orders[order][0]];
		const struct expected expected[] = {
			{0, first->cfa},
			{(uint16_t)(first->end - 1), first->cfa},
			{first->end, 0},
		};
		struct section s = {.is_debug = true};
		size_t cie = put_cie(&s, "zR", DW_EH_PE_udata8);

		for (size_t k = 0; k < 3; k++)
			put_fde(&s, cie, &v[orders[order][k]], 8);
		expect(&s, 1, expected, array_size(expected));
	}
}

/* Compilers write an entry for a function without an instruction. */
TEST(an_empty_function_hides_no_other)
{
	static const struct function v[] = {{0x40, 0x40, 16}, {0x40, 0x80, 24}};
	static const struct expected expected[] = {{0x3f, 0}, {0x40, 24}, {0x7f, 24}, {0x80, 0}};

	for (size_t first = 0; first < 2; first++) {
		struct section s = {.n = 0};
		size_t cie = put_cie(&s, "zR", DW_EH_PE_udata8);

		put_fde(&s, cie, &v[first], 8);
		put_fde(&s, cie, &v[1 - first], 8);
		expect(&s, 1, expected, array_size(expected));
	}
}

/* Even if a function of .debug_frame starts before. */
TEST(debug_frame_is_used_only_where_eh_frame_has_no_function)
{
	static const struct function eh[] = {{0x40, 0x80, 16}, {0x100, 0x140, 24}};
	static const struct function debug[] = {
		{0, 0x60, 32}, {0x70, 0x90, 40}, {0x110, 0x120, 48}};
	static const struct expected expected[] = {
		{0, 32},     {0x3f, 32},  {0x40, 16},  {0x5f, 16},  {0x70, 16},
		{0x7f, 16},  {0x80, 40},  {0x8f, 40},  {0x90, 0},   {0x100, 24},
		{0x10f, 24}, {0x110, 24}, {0x120, 24}, {0x13f, 24}, {0x140, 0},
	};
	struct section v[SECTIONS_MAX] = {{.n = 0}};
	size_t cie;

	v[1].is_debug = true;
	cie = put_cie(&v[0], "zR", DW_EH_PE_udata8);
	for (size_t i = 0; i < array_size(eh); i++)
		put_fde(&v[0], cie, &eh[i], 8);
	cie = put_cie(&v[1], "zR", DW_EH_PE_udata8);
	for (size_t i = 0; i < array_size(debug); i++)
		put_fde(&v[1], cie, &debug[i], 8);
	expect(v, SECTIONS_MAX, expected, array_size(expected));
}

/* Functions whose rows are a thirtieth of a file's limit, each in a part of its own. */
#define SLOW_FUNCTIONS 40
#define SLOW_ROWS      (8u << 10)

TEST(the_limit_of_work_counts_for_the_whole_file)
{
	static uint8_t bytes[(SLOW_ROWS + 64) * SLOW_FUNCTIONS];
	static uint8_t program[SLOW_ROWS];
	struct fuzz_section file = {.name = ".eh_frame", .type = SHT_PROGBITS, .bytes = bytes};
	struct elf_file f;
	struct cfi *cfi;
	int fd;

	memset(program, DW_CFA_advance_loc | 1, sizeof(program));
	for (uint16_t i = 0; i < SLOW_FUNCTIONS; i++) {
		static struct section s;
		size_t cie, at;

		memset(&s, 0, sizeof(s));
		cie = put_cie(&s, "zR", DW_EH_PE_udata8);
		at = begin(&s, cie);
		put_number(&s, BASE + i * SLOW_ROWS, 8);
		put_number(&s, SLOW_ROWS, 8);
		put_number(&s, 0, 1);
		put(&s, program, sizeof(program));
		end(&s, at);
		/* Each function has a CIE. The distance between the two stays. */
		memcpy(bytes + file.size, s.bytes, s.n);
		file.size += s.n;
	}
	fd = fuzz_elf(&file, 1);
	OK(elf_file_open(&f, fd));
	OK(cfi_open_parts(&f, 0, 1, &cfi));
	for (uint16_t i = 0; i < SLOW_FUNCTIONS; i++) {
		const uint64_t at = BASE + i * SLOW_ROWS + 1;
		const bool has_rule = rows_find(cfi_rows(cfi, at), at)->cfa != RULE_CFA_NONE;

		if (i == 0)
			ck_assert(has_rule);
		if (i == SLOW_FUNCTIONS - 1)
			ck_assert(!has_rule);
	}
	cfi_free(cfi);
	elf_file_close(&f);
	close_fd(&fd);
}

#define FULL_FUNCTIONS 20
#define FULL_ROWS      2000u

/* Gives 16 registers an expression that no other register and no other function has. */
static void put_expressions(struct section *s, uint8_t number)
{
	for (uint8_t i = 0; i < 16; i++) {
		uint8_t bytes[3 + 60] = {DW_CFA_expression, i < 15 ? i : CPU_FP, 60};

		memset(bytes + 3, DW_OP_nop, 57);
		memcpy(bytes + 60, (uint8_t[]){DW_OP_const2u, i, number}, 3);
		put(s, bytes, sizeof(bytes));
	}
}

/* They fill the table of a part; then each row of the last function searches all of it. */
TEST(searches_for_equal_expressions_count_as_work)
{
	static struct section s;
	const uint16_t full_end = FULL_FUNCTIONS * 16 + FULL_ROWS;
	const struct function behind = {full_end, full_end + 16, 24};
	size_t cie = put_cie(&s, "zR", DW_EH_PE_udata8);
	struct elf_file f;
	struct cfi *cfi;
	int fd;

	for (uint64_t i = 0; i < FULL_FUNCTIONS; i++) {
		const size_t rows = i == FULL_FUNCTIONS - 1 ? FULL_ROWS : 0;
		const size_t at = begin(&s, cie);

		put_number(&s, BASE + i * 16, 8);
		put_number(&s, 16 + rows, 8);
		put_number(&s, 0, 1);
		put_expressions(&s, (uint8_t)i);
		for (size_t k = 0; k < rows; k++)
			put_number(&s, DW_CFA_advance_loc | 1, 1);
		end(&s, at);
	}
	put_fde(&s, cie, &behind, 8);
	fd = make_file(&s, 1);
	OK(elf_file_open(&f, fd));
	OK(cfi_open_parts(&f, 0, FULL_FUNCTIONS, &cfi));
	ck_assert_int_ne(rows_find(cfi_rows(cfi, BASE), BASE)->cfa, RULE_CFA_NONE);
	/* The file's work is used up. */
	expect_at(cfi_rows(cfi, BASE + full_end), &(struct expected){full_end, 0});
	cfi_free(cfi);
	elf_file_close(&f);
	close_fd(&fd);
}
