#include "lib/unwind/cfi.h"

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/unwind/cfi_entries.h"
#include "lib/unwind/cfi_rule.h"
#include "lib/unwind/cfi_source.h"

/* What libdw keeps of an entry that it has seen: it, and a node of a tree. */
#define LIBDW_ENTRY_BYTES 96

/* cfi.part_fdes entries, from the one with this number on. */
struct part {
	size_t first;
	uint64_t start; /* of the first function */
	uint64_t done;	/* functions of earlier parts reach up to here */
	bool compiled;
	struct rows rows;
};

/* While it is compiled; a file in parts keeps it. */
struct cfi {
	struct cfi_source sources[CFI_SECTIONS];
	struct cfi_entries entries;
	uint64_t base;
	size_t part_fdes;
	struct part *parts;
	size_t n_parts;
	size_t bytes; /* of the rows of all parts */
};

static const struct rows no_rows;

/*
 * From start on. What is left of a function that starts in another one is taken
 * for one that starts there: it is none of the other's.
 */
static int compile_entry(struct cfi *c, struct rows_builder *b,
			 const struct cfi_entry *e, uint64_t start)
{
	Dwarf_CFI *cfi = c->sources[e->source].cfi;
	bool is_start = true;

	while (start < e->end) {
		Dwarf_Frame *frame = NULL;
		Dwarf_Addr first = 0;
		Dwarf_Addr end = 0;
		bool is_signal = false;
		struct rule rule;
		int r;

		if (dwarf_cfi_addrframe(cfi, start, &frame))
			return 0;
		if (dwarf_frame_info(frame, &first, &end, &is_signal) < 0 ||
		    end <= start) {
			free(frame);
			return 0;
		}
		r = cfi_read_rule(b, frame, is_signal, &rule);
		free(frame);
		end = min_u64(end, e->end);
		if (r == 0)
			r = rows_add(b, start, end, is_start, &rule);
		if (r)
			return r;
		is_start = false;
		start = end;
	}
	return 0;
}

/* n entries from first on, of what lies behind done. */
static int compile_entries(struct cfi *c, size_t first, size_t n, uint64_t done,
			   struct rows *ret)
{
	struct rows_builder b;
	int r;

	r = rows_builder_init(&b, c->base);
	for (size_t i = first; i < first + n && r == 0; i++) {
		const struct cfi_entry *e = &c->entries.v[i];

		if (!c->sources[e->source].cfi || e->end <= done)
			continue;
		r = compile_entry(c, &b, e, max_u64(e->start, done));
		done = e->end;
	}
	if (r == 0 || r == -E2BIG)
		r = rows_finish(&b, ret);
	rows_builder_fini(&b);
	return r;
}

static void close_sources(struct cfi *c)
{
	for (uint32_t i = 0; i < CFI_SECTIONS; i++)
		cfi_source_close(&c->sources[i]);
	cfi_entries_fini(&c->entries);
}

/* Which functions there are, in order; and libdw is ready. */
static int read_entries(struct cfi *c, const struct elf_file *f)
{
	int r = 0;

	for (uint16_t i = 0; i < CFI_SECTIONS && r == 0; i++) {
		r = cfi_source_load(&c->sources[i], f, i == CFI_EH_FRAME);
		if (r == 0 && c->sources[i].elf)
			r = cfi_entries_add(&c->entries, &c->sources[i], i);
	}
	if (r)
		return r;
	cfi_entries_sort(&c->entries, c->sources);
	for (uint32_t i = 0; i < CFI_SECTIONS; i++) {
		if (c->sources[i].elf)
			cfi_source_open(&c->sources[i]);
	}
	return 0;
}

static int make_parts(struct cfi *c)
{
	uint64_t done = 0;

	c->n_parts = (c->entries.n + c->part_fdes - 1) / c->part_fdes;
	c->parts = calloc(c->n_parts + 1, sizeof(*c->parts));
	if (!c->parts)
		return -ENOMEM;
	for (size_t i = 0; i < c->entries.n; i++) {
		const struct cfi_entry *e = &c->entries.v[i];

		if (i % c->part_fdes == 0)
			c->parts[i / c->part_fdes] = (struct part){
				.first = i, .start = e->start, .done = done};
		if (c->sources[e->source].cfi)
			done = max_u64(done, e->end);
	}
	return 0;
}

static int compile_part(struct cfi *c, struct part *p)
{
	int r;

	r = compile_entries(c, p->first,
			    min_size(c->part_fdes, c->entries.n - p->first),
			    p->done, &p->rows);
	if (r)
		return r;
	p->compiled = true;
	c->bytes += p->rows.bytes;
	return 0;
}

int cfi_open_parts(const struct elf_file *f, uint64_t base, size_t whole_max,
		   size_t part_fdes, struct cfi **ret)
{
	struct cfi *c = calloc(1, sizeof(*c));
	bool whole;
	int r;

	if (!c)
		return -ENOMEM;
	c->base = base;
	r = read_entries(c, f);
	whole = c->entries.n <= whole_max;
	c->part_fdes = whole ? c->entries.n + 1 : part_fdes;
	if (r == 0)
		r = make_parts(c);
	if (r == 0 && whole && c->n_parts > 0)
		r = compile_part(c, &c->parts[0]);
	if (whole)
		close_sources(c);
	if (r)
		cfi_free(c);
	else
		*ret = c;
	return r;
}

int cfi_open(const struct elf_file *f, uint64_t base, struct cfi **ret)
{
	return cfi_open_parts(f, base, CFI_WHOLE_MAX, CFI_PART_FDES, ret);
}

void cfi_free(struct cfi *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n_parts && c->parts; i++)
		rows_fini(&c->parts[i].rows);
	free(c->parts);
	close_sources(c);
	free(c);
}

/* The part that starts at or before vaddr, last; a part before may reach in. */
static struct part *find_part(struct cfi *c, uint64_t vaddr)
{
	size_t lo = 0;
	size_t hi = c->n_parts;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (c->parts[mid].start <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	while (lo > 1 && c->parts[lo - 1].done > vaddr)
		lo--;
	return lo > 0 ? &c->parts[lo - 1] : NULL;
}

const struct rows *cfi_rows(struct cfi *c, uint64_t vaddr)
{
	struct part *p = c ? find_part(c, vaddr) : NULL;

	if (!p || (!p->compiled && compile_part(c, p)))
		return &no_rows;
	return &p->rows;
}

size_t cfi_bytes(const struct cfi *c)
{
	size_t bytes;

	if (!c)
		return 0;
	bytes = c->bytes + c->n_parts * sizeof(c->parts[0]);
	if (c->entries.v)
		bytes += c->entries.n *
			 (sizeof(c->entries.v[0]) + LIBDW_ENTRY_BYTES);
	for (uint32_t i = 0; i < CFI_SECTIONS; i++)
		bytes += c->sources[i].section.size;
	return bytes;
}

int cfi_compile(const struct elf_file *f, uint64_t base, struct rows *ret)
{
	struct cfi c = {.base = base};
	int r = read_entries(&c, f);

	if (r == 0)
		r = compile_entries(&c, 0, c.entries.n, 0, ret);
	close_sources(&c);
	return r;
}
