/*
 * Call frame information: a byte of flags, then a section or two. What is
 * compiled in parts, in whatever order, has the rules of what is compiled at
 * once.
 */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <elf.h>
#include <string.h>

#include "lib/unwind/cfi.h"

/* The flags; of both sections each is half of the input. */
#define DEBUG_FRAME 1
#define BACKWARDS   2
#define BOTH	    4

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

static bool same_ops(const struct rows *a, uint32_t i, const struct rows *b,
		     uint32_t j, size_t n)
{
	return n == 0 ||
	       memcmp(&a->ops[i], &b->ops[j], n * sizeof(a->ops[0])) == 0;
}

/* Their numbers, of operations, too, are each part's own. */
static void same_full(const struct rows *a, const struct rows *b,
		      const struct rule *x, const struct rule *y)
{
	const struct full_rule *f = &a->full[x->cfa_offset];
	const struct full_rule *g = &b->full[y->cfa_offset];

	assert(f->is_signal == g->is_signal && f->cfa_n_ops == g->cfa_n_ops);
	assert(same_ops(a, f->cfa_ops, b, g->cfa_ops, f->cfa_n_ops));
	for (size_t i = 0; i < SAMPLE_REGS_MAX; i++) {
		const struct reg_rule *p = &f->regs[i];
		const struct reg_rule *q = &g->regs[i];

		assert(p->kind == q->kind && p->value == q->value &&
		       p->n_ops == q->n_ops);
		assert(same_ops(a, p->ops, b, q->ops, p->n_ops));
	}
}

static void compare(struct cfi *cfi, const struct rows *whole, uint64_t vaddr)
{
	const struct rows *part = cfi_rows(cfi, vaddr);
	const struct rule *a = rows_find(part, vaddr);
	const struct rule *b = rows_find(whole, vaddr);
	uint64_t a_start = 0, b_start = 0;

	check_rule(whole, vaddr);
	check_rule(part, vaddr);
	assert(a->cfa == b->cfa);
	if (a->cfa == RULE_CFA_FULL)
		same_full(part, whole, a, b);
	else
		assert(memcmp(a, b, sizeof(*a)) == 0);
	assert(rows_function(part, vaddr, &a_start) ==
	       rows_function(whole, vaddr, &b_start));
	assert(a_start == b_start);
}

/* The limits are of each part, so at one the whole has less. */
static bool is_limited(const struct rows *r)
{
	return r->n_full == ROWS_FULL_MAX || r->n_rules == ROWS_RULES_MAX ||
	       r->n_ops > ROWS_OPS_MAX - EXPR_OPS_MAX;
}

static void use(const struct elf_file *f, bool backwards)
{
	struct rows whole;
	struct cfi *cfi;

	if (cfi_compile(f, 0, &whole))
		return;
	if (ascends(&whole) && !is_limited(&whole) &&
	    cfi_open_parts(f, 0, 0, 2, &cfi) == 0) {
		for (size_t i = 0; i < whole.n; i++) {
			uint64_t pc = whole.pc[backwards ? whole.n - 1 - i : i];

			compare(cfi, &whole, pc);
			compare(cfi, &whole, pc + 1);
			compare(cfi, &whole, pc - 1);
		}
		assert(cfi_bytes(cfi) > 0);
		cfi_free(cfi);
	}
	rows_fini(&whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_section sections[2];
	size_t n = 1;
	struct elf_file f;
	int fd;

	if (size < 2)
		return 0;
	sections[0] = (struct fuzz_section){
		.name = data[0] & DEBUG_FRAME ? ".debug_frame" : ".eh_frame",
		.type = SHT_PROGBITS,
		.addr = SECTION_ADDR,
		.bytes = data + 1,
		.size = size - 1,
	};
	if (data[0] & BOTH) {
		sections[1] = sections[0];
		sections[0].name = ".eh_frame";
		sections[0].size /= 2;
		sections[1].name = ".debug_frame";
		sections[1].bytes += sections[0].size;
		sections[1].size -= sections[0].size;
		n = 2;
	}
	fd = fuzz_elf(sections, n);
	assert(elf_file_open(&f, fd) == 0);
	use(&f, data[0] & BACKWARDS);
	elf_file_close(&f);
	close_fd(&fd);
	return 0;
}
