/*
 * Compares rows with the CFI that libdw reads from the whole file, at random addresses of the C
 * library; and reads damaged files.
 */
#include "lib/unwind/dwarf/cfi.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/unwind/cpu.h"
#include "lib/unwind/dwarf/cfi_source.h"
#include "tests/unit/suite.h"

#define ADDRESSES     20000
#define BROKEN_FILES  60
#define LIBC_ROWS_MAX (250u << 10)

static int open_libc(void)
{
	Dl_info info;
	void *fn = dlsym(RTLD_DEFAULT, "getenv");
	int fd;

	ck_assert_int_ne(dladdr(fn, &info), 0);
	fd = open(info.dli_fname, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	return fd;
}

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 4;
}

/* The offset of a saved register from the CFA. False if the rule is another. */
static bool saved_at(Dwarf_Frame *frame, int reg, int64_t *ret, bool *ret_same, bool *ret_undefined)
{
	Dwarf_Op mem[3];
	Dwarf_Op *ops = mem;
	size_t n = 0;

	OK(dwarf_frame_register(frame, reg, mem, &ops, &n));
	*ret_same = n == 0 && !ops;
	*ret_undefined = n == 0 && ops;
	*ret = n == 2 ? (int64_t)ops[1].number : 0;
	return n == 0 || (ops[0].atom == DW_OP_call_frame_cfa && n <= 2 &&
			  (n == 1 || ops[1].atom == DW_OP_plus_uconst));
}

static void compare_rule(const struct rule *rule, Dwarf_Frame *frame, bool is_signal, uint64_t pc)
{
	static const int saved[] = CPU_SAVED_REGS;
	Dwarf_Op *cfa;
	size_t n_cfa;
	int64_t at;
	bool same;
	bool undefined;

	ck_assert(saved_at(frame, CPU_RA, &at, &same, &undefined) || rule->cfa == RULE_CFA_FULL);
	if (undefined) {
		ck_assert_int_eq(rule->ra, RULE_RA_UNDEFINED);
		return;
	}
	OK(dwarf_frame_cfa(frame, &cfa, &n_cfa));
	if (rule->cfa == RULE_CFA_FULL)
		return;
	ck_assert_msg(!is_signal, "%#lx", (unsigned long)pc);
	ck_assert_uint_eq(n_cfa, 1);
	ck_assert_uint_eq(cfa->atom, DW_OP_bregx);
	ck_assert_uint_eq(cfa->number, rule->cfa == RULE_CFA_SP ? CPU_SP : CPU_FP);
	ck_assert_int_eq((int64_t)cfa->number2, rule->cfa_offset);
	ck_assert_int_eq(at, rule->ra_offset);
	ck_assert(saved_at(frame, CPU_FP, &at, &same, &undefined));
	if (rule->fp == RULE_FP_SAVED)
		ck_assert_int_eq(at, rule->fp_offset);
	ck_assert_int_eq(rule->fp == RULE_FP_SAME, same);
	ck_assert_int_eq(rule->fp == RULE_FP_UNDEFINED, undefined);
	ck_assert(saved_at(frame, saved[1], &at, &same, &undefined));
	ck_assert_int_eq(-8 * rule->saved[1], at);
}

/* Compiles all rows of a file in one part. *ret owns them. */
static const struct rows *compile(const struct elf_file *f, struct cfi **ret)
{
	OK(cfi_open_parts(f, 0, CFI_FDES_MAX, ret));
	return cfi_rows(*ret, UINT64_MAX);
}

/* Parts of one, seven and many functions. */
TESTS(rows_do_not_depend_on_the_size_of_parts, 3)
{
	static const size_t sizes[] = {1, 7, 512};
	int fd = open_libc();
	uint32_t random = 11;
	struct elf_file f;
	const struct rows *whole;
	struct cfi *all, *cfi;
	size_t start_bytes;

	OK(elf_file_open(&f, fd));
	whole = compile(&f, &all);
	OK(cfi_open_parts(&f, 0, sizes[_i], &cfi));
	elf_file_close(&f);
	close_fd(&fd);
	start_bytes = cfi_bytes(cfi);
	for (size_t i = 0; i < ADDRESSES; i++) {
		uint64_t first = whole->pc[0] - 64;
		uint64_t vaddr =
			first + next_random(&random) % (whole->pc[whole->n - 1] + 64 - first);
		const struct rows *part = cfi_rows(cfi, vaddr);
		const struct rule *rule = rows_find(part, vaddr);
		const struct rule *expected = rows_find(whole, vaddr);
		uint64_t start = 0, expected_start = 0;

		if (expected->cfa == RULE_CFA_FULL) {
			ck_assert_int_eq(rule->cfa, RULE_CFA_FULL);
			ck_assert_uint_eq(part->full[rule->cfa_offset].is_signal,
					  whole->full[expected->cfa_offset].is_signal);
		} else {
			ck_assert_mem_eq(rule, expected, sizeof(*rule));
		}
		ck_assert_int_eq(rows_function(part, vaddr, &start),
				 rows_function(whole, vaddr, &expected_start));
		ck_assert_uint_eq(start, expected_start);
		ck_assert_uint_gt(cfi_next_start(cfi, vaddr), vaddr);
		if (start != 0) {
			ck_assert_uint_eq(cfi_next_start(cfi, start - 1), start);
			ck_assert_uint_gt(cfi_next_start(cfi, start), vaddr);
		}
		/* A compiled part stays where it is. */
		ck_assert_ptr_eq(cfi_rows(cfi, vaddr), part);
	}
	ck_assert_uint_gt(cfi_bytes(cfi), start_bytes);
	ck_assert_uint_eq(cfi_rows(cfi, 0)->n, 0);
	ck_assert_uint_eq(cfi_rows(NULL, 0)->n, 0);
	ck_assert_uint_eq(cfi_next_start(cfi, UINT64_MAX), UINT64_MAX);
	ck_assert_uint_eq(cfi_next_start(NULL, 0), UINT64_MAX);
	cfi_free(all);
	cfi_free(cfi);
}

TEST(rows_of_libc_are_those_of_libdw)
{
	int fd = open_libc();
	uint32_t random = 7;
	struct elf_file f;
	const struct rows *rows;
	struct cfi *all;
	uint64_t text = 0;
	uint64_t size = 0;
	Dwarf_CFI *cfi;
	size_t found = 0;

	OK(elf_file_open(&f, fd));
	rows = compile(&f, &all);
	ck_assert_uint_gt(rows->n, 10000);
	ck_assert_uint_le(rows->bytes, LIBC_ROWS_MAX);
	for (int i = 0; i < (int)f.n_phdrs; i++) {
		GElf_Phdr p;

		ck_assert_ptr_nonnull(gelf_getphdr(f.elf, i, &p));
		if (p.p_type == PT_LOAD && p.p_flags & PF_X) {
			text = p.p_vaddr;
			size = p.p_memsz;
		}
	}
	cfi = dwarf_getcfi_elf(f.elf);
	ck_assert_ptr_nonnull(cfi);
	for (int i = 0; i < ADDRESSES; i++) {
		uint64_t pc = text + next_random(&random) % size;
		const struct rule *rule = rows_find(rows, pc);
		Dwarf_Frame *frame;
		bool is_signal;

		if (dwarf_cfi_addrframe(cfi, pc, &frame)) {
			ck_assert_int_eq(rule->cfa, RULE_CFA_NONE);
			continue;
		}
		found++;
		ck_assert_int_ne(rule->cfa, RULE_CFA_NONE);
		ck_assert_int_ge(dwarf_frame_info(frame, NULL, NULL, &is_signal), 0);
		compare_rule(rule, frame, is_signal, pc);
		free(frame);
	}
	ck_assert_uint_gt(found, ADDRESSES / 2);
	(void)dwarf_cfi_end(cfi);
	cfi_free(all);
	elf_file_close(&f);
	close_fd(&fd);
}

/* A writable copy of the file behind fd. */
static int copy(int fd, off_t *ret_size)
{
	int to = memfd_create("copy", MFD_CLOEXEC);
	char bytes[65536];
	off_t size = 0;
	ssize_t n;

	ck_assert_int_ge(to, 0);
	while ((n = read(fd, bytes, sizeof(bytes))) > 0) {
		ck_assert_int_eq(write(to, bytes, (size_t)n), n);
		size += n;
	}
	*ret_size = size;
	return to;
}

/* Both files have the same rows. */
static void expect_same(int fd, int other)
{
	const struct rows *expected, *rows;
	struct cfi *all, *others;
	struct elf_file f, g;

	OK(elf_file_open(&f, fd));
	OK(elf_file_open(&g, other));
	expected = compile(&f, &all);
	rows = compile(&g, &others);
	ck_assert_uint_eq(rows->n, expected->n);
	ck_assert_mem_eq(rows->pc, expected->pc, rows->n * sizeof(*rows->pc));
	ck_assert_mem_eq(rows->rule, expected->rule, rows->n * sizeof(*rows->rule));
	cfi_free(all);
	cfi_free(others);
	elf_file_close(&f);
	elf_file_close(&g);
}

static void put(int fd, uint64_t at, uint64_t value, size_t n)
{
	ck_assert_int_eq(pwrite(fd, &value, n, (off_t)at), (ssize_t)n);
}

TEST(rows_are_found_without_section_headers)
{
	int fd = open_libc();
	off_t size;
	int bare = copy(fd, &size);
	struct elf_file f;

	put(bare, offsetof(Elf64_Ehdr, e_shoff), 0, 8);
	put(bare, offsetof(Elf64_Ehdr, e_shnum), 0, 2);
	put(bare, offsetof(Elf64_Ehdr, e_shstrndx), 0, 2);
	OK(elf_file_open(&f, bare));
	ck_assert_ptr_null(elf_file_section(&f, ".eh_frame", &(GElf_Shdr){0}));
	elf_file_close(&f);
	expect_same(fd, bare);
	close_fd(&bare);
	close_fd(&fd);
}

/*
 * A wrong linker's table: another form, too many entries, or not in order. The functions are then
 * found by the entries. If it is in order but points to nothing, there are no rows.
 */
TEST(a_wrong_search_table_is_not_used)
{
	int fd = open_libc();
	off_t size;
	int bad = copy(fd, &size);
	const struct rows *rows;
	struct elf_file f;
	struct cfi *all;
	GElf_Phdr hdr;
	uint64_t head;

	OK(elf_file_open(&f, bad));
	ck_assert(elf_file_phdr(&f, PT_GNU_EH_FRAME, &hdr));
	ck_assert_int_eq(pread(bad, &head, 8, (off_t)hdr.p_offset), 8);
	put(bad, hdr.p_offset + 3, 0, 1);
	expect_same(fd, bad);
	put(bad, hdr.p_offset, head, 8);
	put(bad, hdr.p_offset + 8, UINT32_MAX, 4);
	expect_same(fd, bad);
	put(bad, hdr.p_offset + 8, 2, 4);
	ck_assert_int_eq(pread(bad, &head, 8, (off_t)hdr.p_offset + 12), 8);
	put(bad, hdr.p_offset + 12 + 8, head, 4);
	expect_same(fd, bad);
	put(bad, hdr.p_offset + 12 + 4, INT32_MAX, 4);
	put(bad, hdr.p_offset + 12 + 8, INT32_MAX, 4);
	put(bad, hdr.p_offset + 12 + 12, 1, 4);
	rows = compile(&f, &all);
	ck_assert_uint_eq(rows->n, 0);
	cfi_free(all);
	elf_file_close(&f);
	close_fd(&bad);
	close_fd(&fd);
}

/* Damages random bytes of the CFI and of headers. The sanitizers would report wrong accesses. */
TESTS(rows_of_damaged_files_are_in_order, BROKEN_FILES)
{
	int fd = open_libc();
	uint32_t random = (uint32_t)_i + 1;
	off_t size;
	int bad = copy(fd, &size);
	GElf_Shdr shdr = {0};
	struct elf_file f;
	const struct rows *rows;
	struct cfi *all;

	OK(elf_file_open(&f, fd));
	ck_assert_ptr_nonnull(elf_file_section(&f, ".eh_frame", &shdr));
	elf_file_close(&f);
	for (int i = 0; i < 200; i++) {
		uint8_t byte = (uint8_t)next_random(&random);
		uint64_t at = shdr.sh_offset + next_random(&random) % shdr.sh_size;

		if (_i % 4 == 0 && i < 4)
			at = next_random(&random) % 1024;
		ck_assert_int_eq(pwrite(bad, &byte, 1, (off_t)at), 1);
	}
	if (_i % 4 == 1)
		OK(ftruncate(bad, (off_t)(next_random(&random) % (uint32_t)size)));
	if (elf_file_open(&f, bad) == 0) {
		rows = compile(&f, &all);
		for (size_t i = 1; i < rows->n; i++)
			ck_assert_uint_gt(rows->pc[i], rows->pc[i - 1]);
		for (size_t i = 0; i < rows->n; i++)
			ck_assert_uint_lt(rows->rule[i] & ~ROWS_START, rows->n_rules);
		cfi_free(all);
		elf_file_close(&f);
	}
	close_fd(&bad);
	close_fd(&fd);
}
