#include "lib/unwind/dwarf/cfi.h"

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/unwind/dwarf/cfi_rule.h"
#include "lib/unwind/dwarf/cfi_source.h"

/*
 * libdw executes a function's program from its start for each of its rows: the
 * sum of rows times bytes of program. All of libLLVM-14 takes 10^8; this ends
 * a part made to be slow after a few seconds.
 */
#define WORK_MAX (UINT64_C(1) << 30)

enum { EH_FRAME, DEBUG_FRAME, SECTIONS };

/* A section, and the rows of those of its functions that were asked for. */
struct table {
	struct cfi_source source;
	struct rows **parts; /* of part_fdes functions each, NULL: not yet */
	size_t n_parts;
};

struct cfi {
	struct table tables[SECTIONS];
	uint64_t base;
	size_t part_fdes;
	size_t bytes;
};

static const struct rows no_rows;

/* The rows of entry number n. */
static int compile_entry(const struct cfi_source *source, size_t n, uint64_t *work,
			 struct rows_builder *b)
{
	const uint64_t next = n + 1 < source->n ? source->entries[n + 1].start : UINT64_MAX;
	uint64_t start = source->entries[n].start;
	Dwarf_Frame *frame = NULL;
	struct cfi_function function;
	bool is_start = true;
	int r;

	r = cfi_function_open(&function, source, n, work);
	if (r)
		return r == -ENOMEM ? r : 0;
	while (r == 0 && start < next && dwarf_cfi_addrframe(function.cfi, start, &frame) == 0) {
		Dwarf_Addr end = 0;
		bool is_signal = false;
		struct rule rule;

		if (dwarf_frame_info(frame, NULL, &end, &is_signal) < 0 || end <= start) {
			free(frame);
			break;
		}
		r = cfi_read_rule(b, frame, is_signal, &rule);
		free(frame);
		end = min_u64(end, next);
		if (r == 0)
			r = rows_add(b, start, end, is_start, &rule);
		is_start = false;
		start = end;
	}
	cfi_function_close(&function);
	return r;
}

static int compile_part(struct cfi *c, const struct table *t, size_t part, struct rows *ret)
{
	const size_t first = part * c->part_fdes;
	const size_t end = first + min_size(c->part_fdes, t->source.n - first);
	uint64_t work = WORK_MAX;
	struct rows_builder b;
	int r;

	r = rows_builder_init(&b, c->base);
	for (size_t n = first; n < end && r == 0; n++)
		r = compile_entry(&t->source, n, &work, &b);
	if (r == 0 || r == -E2BIG)
		r = rows_finish(&b, ret);
	rows_builder_fini(&b);
	return r;
}

int cfi_open_parts(const struct elf_file *f, uint64_t base, size_t part_fdes, struct cfi **ret)
{
	struct cfi *c = calloc(1, sizeof(*c));
	int r = 0;

	if (!c)
		return -ENOMEM;
	c->base = base;
	c->part_fdes = part_fdes;
	for (int i = 0; i < SECTIONS && r == 0; i++) {
		struct table *t = &c->tables[i];

		r = cfi_source_open(&t->source, f, i == EH_FRAME);
		t->n_parts = (t->source.n + part_fdes - 1) / part_fdes;
		t->parts = calloc(t->n_parts + 1, sizeof(*t->parts));
		if (!t->parts)
			r = -ENOMEM;
		c->bytes += t->source.size + t->source.n * sizeof(t->source.entries[0]) +
			    t->n_parts * sizeof(t->parts[0]);
	}
	if (r)
		cfi_free(c);
	else
		*ret = c;
	return r;
}

int cfi_open(const struct elf_file *f, uint64_t base, struct cfi **ret)
{
	return cfi_open_parts(f, base, CFI_PART_FDES, ret);
}

void cfi_free(struct cfi *c)
{
	if (!c)
		return;
	for (int i = 0; i < SECTIONS; i++) {
		struct table *t = &c->tables[i];

		for (size_t k = 0; t->parts && k < t->n_parts; k++) {
			if (t->parts[k])
				rows_fini(t->parts[k]);
			free(t->parts[k]);
		}
		free(t->parts);
		cfi_source_close(&t->source);
	}
	free(c);
}

/* The rows of the function that starts at or before vaddr, last. */
static const struct rows *rows_of(struct cfi *c, struct table *t, uint64_t vaddr)
{
	const struct cfi_source *s = &t->source;
	const size_t n = array_upper_bound(s->entries, s->n, start, vaddr);
	const size_t part = (n - 1) / c->part_fdes;
	struct rows *rows;

	if (n == 0)
		return &no_rows;
	if (t->parts[part])
		return t->parts[part];
	rows = calloc(1, sizeof(*rows));
	if (!rows || compile_part(c, t, part, rows)) {
		free(rows);
		return &no_rows;
	}
	c->bytes += sizeof(*rows) + rows->bytes;
	t->parts[part] = rows;
	return rows;
}

const struct rows *cfi_rows(struct cfi *c, uint64_t vaddr)
{
	const struct rows *rows;

	if (!c)
		return &no_rows;
	rows = rows_of(c, &c->tables[EH_FRAME], vaddr);
	/* Few files have both, so that only theirs are searched twice. */
	if (c->tables[DEBUG_FRAME].source.n > 0 && rows_find(rows, vaddr)->cfa == RULE_CFA_NONE)
		rows = rows_of(c, &c->tables[DEBUG_FRAME], vaddr);
	return rows;
}

size_t cfi_bytes(const struct cfi *c)
{
	return c ? c->bytes : 0;
}
