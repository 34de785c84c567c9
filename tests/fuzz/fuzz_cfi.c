/*
 * Call frame information: a byte (odd: .debug_frame), then the section. What is
 * compiled in parts has the rules of what is compiled at once.
 */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <elf.h>
#include <string.h>

#include "lib/unwind/cfi.h"

/* Where the sections of the corpus stood. */
#define SECTION_ADDR 0x10000

static bool ascends(const struct rows *rows)
{
	for (size_t i = 1; i < rows->n; i++)
		assert(rows->pc[i] > rows->pc[i - 1]);
	return rows->n > 0;
}

static void check_rule(const struct rows *rows, uint64_t vaddr)
{
	const struct rule *rule = rows_find(rows, vaddr);
	uint64_t start;

	assert(rule->cfa == RULE_CFA_NONE ||
	       (rule >= rows->rules && rule < rows->rules + rows->n_rules));
	if (rule->cfa == RULE_CFA_FULL)
		assert((size_t)rule->cfa_offset < rows->n_full);
	if (rows_function(rows, vaddr, &start))
		assert(start <= vaddr);
}

static void compare(struct cfi *cfi, const struct rows *whole, uint64_t vaddr)
{
	const struct rows *part = cfi_rows(cfi, vaddr);
	const struct rule *a, *b = rows_find(whole, vaddr);

	check_rule(whole, vaddr);
	if (part->n == 0)
		return;
	check_rule(part, vaddr);
	a = rows_find(part, vaddr);
	/* Full rules have numbers of their own in each part. */
	if (a->cfa != RULE_CFA_FULL || b->cfa != RULE_CFA_FULL)
		assert(memcmp(a, b, sizeof(*a)) == 0);
}

static void use(const struct elf_file *f)
{
	struct rows whole;
	struct cfi *cfi;

	if (cfi_compile(f, 0, &whole))
		return;
	if (ascends(&whole) && cfi_open_parts(f, 0, 0, 2, &cfi) == 0) {
		for (size_t i = 0; i < whole.n; i++) {
			compare(cfi, &whole, whole.pc[i]);
			compare(cfi, &whole, whole.pc[i] + 1);
		}
		assert(cfi_bytes(cfi) > 0);
		cfi_free(cfi);
	}
	rows_fini(&whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_section section = {
		.type = SHT_PROGBITS,
		.addr = SECTION_ADDR,
		.bytes = data + 1,
		.size = size - 1,
	};
	struct elf_file f;
	int fd;

	if (size < 2)
		return 0;
	section.name = data[0] & 1 ? ".debug_frame" : ".eh_frame";
	fd = fuzz_elf(&section, 1);
	assert(elf_file_open(&f, fd) == 0);
	use(&f);
	elf_file_close(&f);
	close_fd(&fd);
	return 0;
}
