/* Tests with the symbols of this program. */
#include "lib/unwind/elf/symbols.h"

#include <fcntl.h>
#include <link.h>

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
	".type sized, @function\n"
	"sized: nop; nop; inner: nop; ret\n"
	".size sized, . - sized\n"
	"nop; nop\n");
extern const char sized[];

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
	expect(addr + 3, "zz_alias", 3);
	addr = (uint64_t)(uintptr_t)only_local;
	expect(addr + 1, "only_local", 1);
	addr = (uint64_t)(uintptr_t)untyped;
	expect(addr, "untyped", 0);
	expect(addr + 3, "untyped", 3);
	addr = (uint64_t)(uintptr_t)sized;
	expect(addr, "sized", 0);
	/* A label within a function does not name it. */
	expect(addr + 3, "sized", 3);
}

TEST(addresses_outside_of_symbols_have_no_name)
{
	const char *name;
	uint64_t offset;

	ck_assert(!symbols_find(&symbols, 0, &name, &offset));
	ck_assert(!symbols_find(&symbols, UINT64_MAX, &name, &offset));
	/* No symbol covers the bytes behind a function with a size. */
	ck_assert(!symbols_find(&symbols, (uint64_t)(uintptr_t)sized + 4 - bias, &name, &offset));
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
