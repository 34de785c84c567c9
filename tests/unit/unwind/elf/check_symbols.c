/* Tests with the symbols of this program. */
#include "lib/unwind/elf/symbols.h"

#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "tests/unit/suite.h"

void zz_alias(void);
void a_longer_alias(void);
void weak_a(void);

/* Local, weak and global names of one function: the shortest global one is chosen. */
__attribute__((noinline)) static void local(void)
{
	__asm__ volatile("nop; nop; nop; nop");
}
void a_longer_alias(void) __attribute__((alias("local")));
void zz_alias(void) __attribute__((alias("local")));
void weak_a(void) __attribute__((weak, alias("local")));

__attribute__((noinline)) static void only_local(void)
{
	__asm__ volatile("nop; nop");
}

/* A symbol without size and type, as in hand-written assembly. */
void untyped(void);
__asm__(".text\n"
	".globl untyped\n"
	"untyped: nop; nop; nop; ret\n"
	".globl sized\n"
	".type sized, @function\n"
	"sized: nop; nop; inner: nop; ret\n"
	".size sized, . - sized\n"
	"nop; nop\n");
extern const char sized[];

/* The size of "nop", and of "ret". */
#if defined(__aarch64__)
#define INSTRUCTION 4
#else
#define INSTRUCTION 1
#endif

static struct symbols symbols;
static uint64_t bias;

static int first_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	bias = info->dlpi_addr;
	return 1;
}

static void set_up(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct elf_file f;

	(void)dl_iterate_phdr(first_object, NULL);
	OK(elf_file_open(&f, fd));
	ck_assert(symbols_has_symtab(&f));
	OK(symbols_load(&f, NULL, 0, &symbols));
	elf_file_close(&f);
	close_fd(&fd);
}

static void tear_down(void)
{
	symbols_fini(&symbols);
}

static void expect(uint64_t addr, const char *name, uint64_t offset)
{
	const char *found;
	uint64_t at;

	ck_assert(symbols_find(&symbols, addr - bias, &found, &at));
	ck_assert_str_eq(found, name);
	ck_assert_uint_eq(at, offset);
}

FIXTURE(set_up, tear_down)

TEST(the_best_name_of_an_address_is_chosen)
{
	uint64_t addr = (uint64_t)(uintptr_t)local;

	local();
	only_local();
	expect(addr, "zz_alias", 0);
	expect(addr + 3 * INSTRUCTION, "zz_alias", 3 * INSTRUCTION);
	addr = (uint64_t)(uintptr_t)only_local;
	expect(addr + 1, "only_local", 1);
	addr = (uint64_t)(uintptr_t)untyped;
	expect(addr, "untyped", 0);
	expect(addr + 3 * INSTRUCTION, "untyped", 3 * INSTRUCTION);
	addr = (uint64_t)(uintptr_t)sized;
	expect(addr, "sized", 0);
	/* A label within a function does not name it. */
	expect(addr + 3 * INSTRUCTION, "sized", 3 * INSTRUCTION);
}

TEST(addresses_outside_of_symbols_have_no_name)
{
	const char *name;
	uint64_t offset;

	ck_assert(!symbols_find(&symbols, 0, &name, &offset));
	ck_assert(!symbols_find(&symbols, UINT64_MAX, &name, &offset));
	/* No symbol covers the bytes behind a function with a size. */
	ck_assert(!symbols_find(&symbols, (uint64_t)(uintptr_t)sized + 4 * INSTRUCTION - bias,
				&name, &offset));
}

TEST(the_debug_file_is_used_only_without_a_symtab)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct symbols none;
	struct elf_file f;
	struct elf_file debug;
	const char *name;
	uint64_t offset;

	/* The file as its own debug file: used only if there is no .symtab. */
	OK(elf_file_open(&f, fd));
	OK(elf_file_open(&debug, fd));
	OK(symbols_load(&f, &debug, 0, &none));
	ck_assert_uint_eq(none.n, symbols.n);
	symbols_fini(&none);
	/* The image has no addresses below its base. */
	OK(symbols_load(&f, NULL, UINT64_C(1) << 40, &none));
	ck_assert(!symbols_find(&none, UINT64_C(1) << 40, &name, &offset));
	symbols_fini(&none);
	elf_file_close(&f);
	elf_file_close(&debug);
	close_fd(&fd);
}

/* Only by the whole name that was chosen, and only with a size. */
TEST(the_range_of_a_function_is_found_by_its_name)
{
	uint64_t start, end;

	ck_assert(symbols_range(&symbols, "zz_alias", &start, &end));
	ck_assert_uint_eq(start + bias, (uint64_t)(uintptr_t)local);
	ck_assert_uint_ge(end - start, 4);
	ck_assert(!symbols_range(&symbols, "zz_alia", &start, &end));
	ck_assert(!symbols_range(&symbols, "zz_alias_", &start, &end));
	ck_assert(!symbols_range(&symbols, "untyped", &start, &end));
}

/* Bytes of a name that is longer than SYMBOLS_NAME_MAX. */
#define LONG_NAME 5000u
/* The addresses and sizes of the symbols of the files below. */
#define AT   0x1000u
#define STEP 0x10u

/*
 * Returns a file with a symbol table of so many bytes, in which all entries but the ones given are
 * empty. Their names are at offset 1 of the string table.
 */
static int make_file(const Elf64_Sym *v, const size_t *at, size_t n, uint64_t size)
{
	static uint8_t names[LONG_NAME + 2];
	const struct fuzz_section sections[] = {
		{.name = ".strtab", .type = SHT_STRTAB, .bytes = names, .size = sizeof(names)},
		{.name = ".symtab", .type = SHT_SYMTAB, .link = 1, .entry_size = sizeof(*v)},
	};
	uint64_t end;
	Elf64_Ehdr ehdr;
	Elf64_Shdr shdr;
	int fd;

	memset(names + 1, 'x', LONG_NAME);
	fd = fuzz_elf(sections, array_size(sections));
	/* The table is a hole behind the other parts of the file. */
	OK(elf_file_pread(fd, &ehdr, sizeof(ehdr), 0));
	OK(elf_file_pread(fd, &shdr, sizeof(shdr), ehdr.e_shoff + 2 * sizeof(shdr)));
	end = (uint64_t)lseek(fd, 0, SEEK_END);
	shdr.sh_offset = end;
	shdr.sh_size = size;
	ck_assert_int_eq(pwrite(fd, &shdr, sizeof(shdr), (off_t)(ehdr.e_shoff + 2 * sizeof(shdr))),
			 sizeof(shdr));
	OK(ftruncate(fd, (off_t)(end + size)));
	for (size_t i = 0; i < n; i++)
		ck_assert_int_eq(
			pwrite(fd, &v[i], sizeof(v[i]), (off_t)(end + at[i] * sizeof(v[i]))),
			sizeof(v[i]));
	return fd;
}

static void load(int file, struct symbols *ret)
{
	struct elf_file f;

	OK(elf_file_open(&f, file));
	OK(symbols_load(&f, NULL, 0, ret));
	elf_file_close(&f);
	close_fd(&file);
}

/*
 * Returns a file with a section of code from AT on, of CODE_SIZE bytes, and a table with these
 * symbols, which are defined in the section. Their names are "f0", "f1" and so on.
 */
#define CODE_SIZE 0x100u
static int make_code(const Elf64_Sym *v, size_t n)
{
	static const char names[] = "\0f0\0f1\0f2\0f3\0f4\0f5\0f6\0f7";
	static const uint8_t code[CODE_SIZE];
	Elf64_Sym table[9] = {{0}};
	const struct fuzz_section sections[] = {
		{.name = ".text", .type = SHT_PROGBITS, .bytes = code, .size = sizeof(code)},
		{.name = ".fini", .type = SHT_PROGBITS, .bytes = code, .size = sizeof(code)},
		{.name = ".strtab",
		 .type = SHT_STRTAB,
		 .bytes = (const uint8_t *)names,
		 .size = sizeof(names)},
		{.name = ".symtab",
		 .type = SHT_SYMTAB,
		 .link = 3,
		 .entry_size = sizeof(*v),
		 .bytes = (const uint8_t *)table,
		 .size = (n + 1) * sizeof(*v)},
	};

	ck_assert_uint_lt(n, array_size(table));
	for (size_t i = 0; i < n; i++) {
		table[i + 1] = v[i];
		table[i + 1].st_name = (Elf64_Word)(1 + 3 * i);
	}
	return fuzz_elf(sections, array_size(sections));
}

/* A function at AT, and one at AT + STEP. */
static const Elf64_Sym functions[] = {
	{.st_name = 1, .st_info = STT_FUNC, .st_shndx = 1, .st_value = AT, .st_size = STEP},
	{.st_name = 1, .st_info = STT_FUNC, .st_shndx = 1, .st_value = AT + STEP, .st_size = STEP},
};

TEST(a_table_above_the_limit_counts_as_missing)
{
	static const size_t at[] = {1, 2};
	struct symbols s;

	load(make_file(functions, at, 2, 3 * sizeof(Elf64_Sym)), &s);
	ck_assert_uint_eq(s.n, 2);
	symbols_fini(&s);
	load(make_file(functions, at, 2, SYMBOLS_SECTION_MAX + 1), &s);
	ck_assert_uint_eq(s.n, 0);
	symbols_fini(&s);
}

TEST(symbols_above_the_limit_are_left_out)
{
	static const size_t at[] = {SYMBOLS_MAX - 1, SYMBOLS_MAX};
	struct symbols s;

	load(make_file(functions, at, 2, (SYMBOLS_MAX + 1) * sizeof(Elf64_Sym)), &s);
	ck_assert_uint_eq(s.n, 1);
	ck_assert_uint_eq(s.v[0].start, AT);
	symbols_fini(&s);
}

TEST(a_long_name_is_cut)
{
	static const size_t at = 1;
	struct symbols s;

	load(make_file(functions, &at, 1, 2 * sizeof(Elf64_Sym)), &s);
	ck_assert_uint_eq(s.n, 1);
	ck_assert_uint_eq(strlen(s.names + s.v[0].name), SYMBOLS_NAME_MAX);
	symbols_fini(&s);
}

/* Checks which symbol covers an address, and from where. NULL: none does. */
static void expect_in(const struct symbols *s, uint64_t vaddr, const char *name, uint64_t offset)
{
	const char *found;
	uint64_t at;

	ck_assert_msg(symbols_find(s, vaddr, &found, &at) == (name != NULL), "0x%lx", vaddr);
	if (name) {
		ck_assert_str_eq(found, name);
		ck_assert_uint_eq(at, offset);
	}
}

#define FUNCTION(value, size, section)                                                    \
	{                                                                                 \
		.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_value = AT + (value), \
		.st_size = (size), .st_shndx = (section)                                  \
	}

/* Where another function begins, as CFI says it. */
static uint64_t next_function(const void *ctx, uint64_t vaddr)
{
	const uint64_t start = *(const uint64_t *)ctx;

	return vaddr < start ? start : UINT64_MAX;
}

/* As _init and _fini have, and functions of hand-written assembly. */
TEST(a_symbol_without_a_size_ends_where_its_function_ends)
{
	static const Elf64_Sym v[] = {
		FUNCTION(0, 0, 1),		/* f0: up to f1 */
		FUNCTION(0x10, 0x20, 1),	/* f1 */
		FUNCTION(0x18, 0, 1),		/* f2: up to the end of f1, which it is in */
		FUNCTION(0x40, 0, 1),		/* f3: up to the next function, by CFI */
		FUNCTION(0x80, 0, 1),		/* f4: up to the end of its section */
		FUNCTION(CODE_SIZE, 0, 1),	/* f5: a label at the end of its section */
		FUNCTION(CODE_SIZE + 8, 0, 2),	/* f6: in .fini */
		FUNCTION(4 * CODE_SIZE, 0, 99), /* f7: in no section, and long */
	};
	const uint64_t function = AT + 0x60;
	struct symbols s;

	load(make_code(v, array_size(v)), &s);
	expect_in(&s, AT + 0x60, "f3", 0x20);
	symbols_bound(&s, next_function, &function);
	expect_in(&s, AT, "f0", 0);
	expect_in(&s, AT + 0xf, "f0", 0xf);
	expect_in(&s, AT + 0x17, "f1", 7);
	expect_in(&s, AT + 0x2f, "f2", 0x17);
	expect_in(&s, AT + 0x30, NULL, 0);
	expect_in(&s, AT + 0x40, "f3", 0);
	expect_in(&s, AT + 0x5f, "f3", 0x1f);
	expect_in(&s, AT + 0x60, NULL, 0);
	expect_in(&s, AT + 0x7f, NULL, 0);
	expect_in(&s, AT + CODE_SIZE - 1, "f4", CODE_SIZE - 0x81);
	expect_in(&s, AT + CODE_SIZE, NULL, 0);
	expect_in(&s, AT + CODE_SIZE + 7, NULL, 0);
	expect_in(&s, AT + 2 * CODE_SIZE - 1, "f6", CODE_SIZE - 9);
	expect_in(&s, AT + 2 * CODE_SIZE, NULL, 0);
	expect_in(&s, AT + 4 * CODE_SIZE + SYMBOLS_NO_SIZE_MAX - 1, "f7", SYMBOLS_NO_SIZE_MAX - 1);
	expect_in(&s, AT + 4 * CODE_SIZE + SYMBOLS_NO_SIZE_MAX, NULL, 0);
	symbols_fini(&s);
}

/* The size is kept in 32 bits. */
TEST(a_large_symbol_covers_all_addresses_behind_it)
{
	static const size_t at = 1;
	Elf64_Sym large = functions[0];
	struct symbols s;
	const char *name;
	uint64_t offset;

	large.st_size = (UINT64_C(1) << 32) + STEP;
	load(make_file(&large, &at, 1, 2 * sizeof(Elf64_Sym)), &s);
	ck_assert(symbols_find(&s, AT + 2 * STEP, &name, &offset));
	ck_assert_uint_eq(offset, 2 * STEP);
	ck_assert(symbols_find(&s, UINT32_MAX - 1, &name, &offset));
	ck_assert_uint_le(s.v[0].size, UINT32_MAX - AT);
	symbols_fini(&s);
}
