/*
 * Call frame information: a byte of flags, then one or two sections. Functions that are compiled
 * one by one, in any order, must have the same rules as those compiled together with their
 * neighbours.
 */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <elf.h>
#include <string.h>

#include "lib/unwind/dwarf/cfi.h"

/* The flags. With two sections each has half of the input. */
#define DEBUG_FRAME 1
#define BACKWARDS   2
#define BOTH	    4
#define TABLE	    8 /* the first half is .eh_frame_hdr */

/* The address of the sections in the corpus. */
#define SECTION_ADDR 0x10000

static void ascends(const struct rows *rows)
{
	for (size_t i = 1; i < rows->n; i++)
		assert(rows->pc[i] > rows->pc[i - 1]);
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

static bool same_ops(const struct rows *a, uint32_t i, const struct rows *b, uint32_t j, size_t n)
{
	return n == 0 || memcmp(&a->ops[i], &b->ops[j], n * sizeof(a->ops[0])) == 0;
}

/* Numbers of full rules and operations differ between parts. */
static void same_full(const struct rows *a, const struct rows *b, const struct rule *x,
		      const struct rule *y)
{
	const struct full_rule *f = &a->full[x->cfa_offset];
	const struct full_rule *g = &b->full[y->cfa_offset];

	assert(f->is_signal == g->is_signal && f->cfa_n_ops == g->cfa_n_ops);
	assert(same_ops(a, f->cfa_ops, b, g->cfa_ops, f->cfa_n_ops));
	for (size_t i = 0; i < SAMPLE_REGS_MAX; i++) {
		const struct reg_rule *p = &f->regs[i];
		const struct reg_rule *q = &g->regs[i];

		assert(p->kind == q->kind && p->value == q->value && p->n_ops == q->n_ops);
		assert(same_ops(a, p->ops, b, q->ops, p->n_ops));
	}
}

static void compare(struct cfi *one, struct cfi *few, uint64_t vaddr)
{
	const struct rows *x = cfi_rows(one, vaddr);
	const struct rows *y = cfi_rows(few, vaddr);
	const struct rule *a = rows_find(x, vaddr);
	const struct rule *b = rows_find(y, vaddr);
	uint64_t a_start = 0, b_start = 0;

	check_rule(x, vaddr);
	check_rule(y, vaddr);
	assert(a->cfa == b->cfa);
	if (a->cfa == RULE_CFA_FULL)
		same_full(x, y, a, b);
	else
		assert(memcmp(a, b, sizeof(*a)) == 0);
	assert(rows_function(x, vaddr, &a_start) == rows_function(y, vaddr, &b_start));
	assert(a_start == b_start);
}

/* Functions in a part: four functions of INPUT_MAX bytes stay below the limit of work. */
#define FEW	  4
#define MANY	  4096
#define INPUT_MAX 8192

/* Looks up all functions, or as many as the limit of work of one part allows. */
static void use(const struct elf_file *f, bool backwards)
{
	struct cfi *one = NULL, *few = NULL, *all = NULL;

	if (cfi_open_parts(f, 0, 1, &one) == 0 && cfi_open_parts(f, 0, FEW, &few) == 0 &&
	    cfi_open_parts(f, 0, MANY, &all) == 0) {
		const struct rows *rows = cfi_rows(all, UINT64_MAX);

		ascends(rows);
		for (size_t i = 0; i < rows->n; i++) {
			uint64_t pc = rows->pc[backwards ? rows->n - 1 - i : i];

			compare(one, few, pc);
			compare(one, few, pc + 1);
			compare(one, few, pc - 1);
		}
	}
	cfi_free(one);
	cfi_free(few);
	cfi_free(all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_section sections[2];
	size_t n = 1;
	struct elf_file f;
	int fd;

	if (size < 2 || size > INPUT_MAX)
		return 0;
	sections[0] = (struct fuzz_section){
		.name = data[0] & DEBUG_FRAME ? ".debug_frame" : ".eh_frame",
		.type = SHT_PROGBITS,
		.addr = SECTION_ADDR,
		.bytes = data + 1,
		.size = size - 1,
	};
	if (data[0] & (BOTH | TABLE)) {
		const bool table = data[0] & TABLE;

		sections[1] = sections[0];
		sections[0].name = table ? ".eh_frame_hdr" : ".eh_frame";
		sections[0].size /= 2;
		sections[1].name = table ? ".eh_frame" : ".debug_frame";
		sections[1].bytes += sections[0].size;
		sections[1].size -= sections[0].size;
		if (table)
			sections[0].addr -= sections[0].size;
		n = 2;
	}
	fd = fuzz_elf(sections, n);
	assert(elf_file_open(&f, fd) == 0);
	use(&f, data[0] & BACKWARDS);
	elf_file_close(&f);
	close_fd(&fd);
	return 0;
}
