/* The names of PLT stubs in files made by hand, with the stubs that linkers write. */
#include "lib/unwind/elf/plt.h"

#include <string.h>

#include "lib/unwind/cpu.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/suite.h"

/* The first section of a file made by hand. */
#define PLT	 FUZZ_SECTIONS_AT
#define GOT	 0x9010u
#define CODE_MAX 256

static const char names[] = "\0malloc\0free";
#define NAME_MALLOC 1
#define NAME_FREE   8

static const Elf64_Sym dynsym[] = {
	{0},
	{.st_name = NAME_MALLOC},
	{.st_name = NAME_FREE},
	{.st_name = 1000},
};
enum { SYMBOL_MALLOC = 1, SYMBOL_FREE, SYMBOL_NAMELESS };

/* Slots of the GOT. The one behind them has no relocation. */
enum { SLOT_MALLOC, SLOT_FREE, SLOT_NAMELESS, SLOT_BEYOND, SLOT_RESOLVED, SLOTS_N };

#define RESOLVER 0x7000

static const Elf64_Rela relocations[] = {
	{GOT + 8 * SLOT_FREE, ELF64_R_INFO(SYMBOL_FREE, CPU_RELOCATION_GLOB_DAT), 0},
	{GOT + 8 * SLOT_MALLOC, ELF64_R_INFO(SYMBOL_MALLOC, CPU_RELOCATION_JUMP_SLOT), 0},
	{GOT + 8 * SLOT_NAMELESS, ELF64_R_INFO(SYMBOL_NAMELESS, CPU_RELOCATION_JUMP_SLOT), 0},
	{GOT + 8 * SLOT_BEYOND, ELF64_R_INFO(1000, CPU_RELOCATION_JUMP_SLOT), 0},
	{GOT + 8 * SLOT_RESOLVED, ELF64_R_INFO(0, CPU_RELOCATION_IRELATIVE), RESOLVER},
};

static uint8_t code[CODE_MAX];
static size_t code_size;

static void add(const void *bytes, size_t n)
{
	ck_assert_uint_le(code_size + n, CODE_MAX);
	memcpy(code + code_size, bytes, n);
	code_size += n;
}

static void add_word(uint32_t word)
{
	add(&word, sizeof(word));
}

#if CPU_ELF_MACHINE == EM_X86_64

/* GNU ld, gold, lld; GNU ld and lld with IBT; the same with bnd; mold; .plt.got. */
enum { LAZY, IBT, BND, MOLD, SHORT, KINDS };
static const size_t sizes[KINDS] = {16, 16, 16, 16, 8};

static void add_jump(uint64_t slot)
{
	add("\xff\x25", 2);
	add_word((uint32_t)(slot - (PLT + code_size + 4)));
}

static void add_stub(int kind, uint64_t slot)
{
	if (kind == IBT || kind == BND || kind == MOLD)
		add("\xf3\x0f\x1e\xfa", 4);
	if (kind == BND)
		add("\xf2", 1);
	if (kind == MOLD)
		add("\x41\xbb\x01\0\0\0", 6);
	add_jump(slot);
	if (kind == LAZY)
		add("\x68\x01\0\0\0\xe9\xe0\xff\xff\xff", 10);
	if (kind == IBT)
		add("\x66\x0f\x1f\x44\0\0", 6);
	if (kind == BND)
		add("\x0f\x1f\x44\0\0", 5);
	if (kind == SHORT)
		add("\x66\x90", 2);
}

/* push 8(GOT); jmp *16(GOT); nop */
static void add_head(void)
{
	add("\xff\x35", 2);
	add_word(GOT - 16 - PLT);
	add_jump(GOT - 8);
	add("\x0f\x1f\x40\0", 4);
}

#else

/* With and without branch target identification. */
enum { PLAIN, BTI, KINDS };
static const size_t sizes[KINDS] = {16, 24};

static void add_jump(uint64_t slot)
{
	const uint32_t page = (uint32_t)(slot >> 12) - (uint32_t)((PLT + code_size) >> 12);

	add_word(0x90000010 | (page & 3) << 29 | (page >> 2 & 0x7ffff) << 5);
	add_word(0xf9400211 | (uint32_t)(slot & 0xfff) / 8 << 10);
	add_word(0x91000210 | (uint32_t)(slot & 0xfff) << 10);
	add_word(0xd61f0220);
}

static void add_stub(int kind, uint64_t slot)
{
	if (kind == BTI)
		add_word(0xd503245f);
	add_jump(slot);
	if (kind == BTI)
		add_word(0xd503201f);
}

/* stp x16,x30,[sp,#-16]! ... */
static void add_head(void)
{
	add_word(0xa9bf7bf0);
	add_jump(GOT - 8);
	for (int i = 0; i < 3; i++)
		add_word(0xd503201f);
}

#endif

static void open_file(const void *rela, size_t rela_size, const char *section, int *fd,
		      struct elf_file *f)
{
	const struct fuzz_section sections[] = {
		{.name = section, .type = SHT_PROGBITS, .bytes = code, .size = code_size},
		{.name = ".rela.plt", .type = SHT_RELA, .bytes = rela, .size = rela_size},
		{.name = ".dynsym",
		 .type = SHT_DYNSYM,
		 .link = 4,
		 .bytes = (const uint8_t *)dynsym,
		 .size = sizeof(dynsym)},
		{.name = ".dynstr",
		 .type = SHT_STRTAB,
		 .bytes = (const uint8_t *)names,
		 .size = sizeof(names)},
	};

	*fd = fuzz_elf(sections, array_size(sections));
	OK(elf_file_open(f, *fd));
}

static void load(struct plt *plt, const struct symbols *symbols, const char *section)
{
	struct elf_file f;
	int fd;

	open_file(relocations, sizeof(relocations), section, &fd, &f);
	memset(plt, 0, sizeof(*plt));
	plt_find(plt, &f);
	OK(plt_load(plt, &f, symbols));
	elf_file_close(&f);
	close_fd(&fd);
}

/* Checks the name of an address. NULL: it has none. */
static void expect(const struct plt *plt, uint64_t vaddr, const char *name, uint64_t offset)
{
	const char *found;
	uint64_t at;

	if (!name) {
		ck_assert(!plt_name(plt, vaddr, &found, &at));
		return;
	}
	ck_assert_msg(plt_name(plt, vaddr, &found, &at), "%s", name);
	ck_assert_str_eq(found, name);
	ck_assert_uint_eq(at, offset);
}

TESTS(stubs_have_the_names_of_the_functions_that_they_call, KINDS)
{
	static const char *const sections[] = {".plt", ".plt.sec", ".plt.got", ".iplt"};
	static const char *const expected[] = {"malloc@plt", "free@plt", NULL, NULL, NULL, NULL};
	const struct symbols none = {.v = NULL};
	const size_t size = sizes[_i];
	struct plt plt;
	uint64_t start;

	code_size = 0;
	add_head();
	start = PLT + code_size;
	for (size_t i = 0; i <= SLOTS_N; i++)
		add_stub(_i, GOT + 8 * i);
	load(&plt, &none, sections[_i % (int)array_size(sections)]);
	ck_assert(!plt_covers(&plt, PLT - 1));
	ck_assert(plt_covers(&plt, PLT));
	ck_assert(plt_covers(&plt, PLT + code_size - 1));
	ck_assert(!plt_covers(&plt, PLT + code_size));
	expect(&plt, PLT, NULL, 0);
	expect(&plt, start - 1, NULL, 0);
	for (size_t i = 0; i <= SLOTS_N; i++) {
		expect(&plt, start + i * size, expected[i], 0);
		expect(&plt, start + (i + 1) * size - 1, expected[i], size - 1);
	}
	plt_drop(&plt);
	expect(&plt, start, NULL, 0);
	ck_assert(plt_covers(&plt, PLT));
}

/* A function that the file itself chooses at its start (STT_GNU_IFUNC). */
TEST(a_stub_of_a_function_of_the_file_has_its_symbols_name)
{
	static char strings[] = "tiny";
	struct symbol v = {.start = RESOLVER, .size = 8};
	struct symbols symbols = {.v = &v, .n = 1, .names = strings};
	struct plt plt;

	code_size = 0;
	add_stub(0, GOT + 8 * SLOT_RESOLVED);
	load(&plt, &symbols, ".plt");
	expect(&plt, PLT, "tiny@plt", 0);
	plt_drop(&plt);
	/* The symbol does not begin at the resolver. */
	v.start--;
	load(&plt, &symbols, ".plt");
	expect(&plt, PLT, NULL, 0);
	plt_drop(&plt);
}

TEST(other_sections_are_no_plt)
{
	const struct symbols none = {.v = NULL};
	struct plt plt;

	code_size = 0;
	add_stub(0, GOT);
	load(&plt, &none, ".text");
	ck_assert(!plt_covers(&plt, PLT));
	expect(&plt, PLT, NULL, 0);
	plt_drop(&plt);
}

/* Parts of a table, and relocations of other types, name nothing; others stay. */
TEST(malformed_relocations_are_left_out)
{
	const struct symbols none = {.v = NULL};
	Elf64_Rela rela[2] = {relocations[0], relocations[1]};
	struct elf_file f;
	int fd;

	code_size = 0;
	add_stub(0, GOT + 8 * SLOT_MALLOC);
	add_stub(0, GOT + 8 * SLOT_FREE);
	rela[0].r_info = ELF64_R_INFO(SYMBOL_FREE, 1);
	for (size_t size = 0; size <= sizeof(rela); size++) {
		struct plt plt = {.n_sections = 0};

		open_file(rela, size, ".plt", &fd, &f);
		plt_find(&plt, &f);
		OK(plt_load(&plt, &f, &none));
		expect(&plt, PLT, size == sizeof(rela) ? "malloc@plt" : NULL, 0);
		expect(&plt, PLT + sizes[0], NULL, 0);
		plt_drop(&plt);
		elf_file_close(&f);
		close_fd(&fd);
	}
}

/* The instructions of a stub have at least 6 bytes on x86-64, 8 on aarch64. */
TEST(a_section_may_end_within_a_stub)
{
	const size_t needed = CPU_ELF_MACHINE == EM_X86_64 ? 6 : 8;
	const struct symbols none = {.v = NULL};
	struct plt plt;

	code_size = 0;
	add_stub(0, GOT + 8 * SLOT_MALLOC);
	for (; code_size > 0; code_size--) {
		load(&plt, &none, ".plt");
		expect(&plt, PLT, code_size >= needed ? "malloc@plt" : NULL, 0);
		expect(&plt, PLT + code_size, NULL, 0);
		plt_drop(&plt);
	}
}
