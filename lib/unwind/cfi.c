#include "lib/unwind/cfi.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/unwind/cfi_check.h"
#include "lib/unwind/cfi_rule.h"
#include "lib/unwind/cfi_source.h"

/*
 * libdw executes a function's program from its start for each of its rows:
 * the sum of rows times bytes of program. libLLVM-14 takes 10^8; this ends a
 * file made to be slow after a few seconds.
 */
#define WORK_MAX (UINT64_C(1) << 30)
/* What a row costs beside its program's bytes, in the same unit. */
#define WORK_ROW 64

enum { EH_FRAME, DEBUG_FRAME, N_SECTIONS };

struct entry {
	uint64_t start;
	uint64_t end;
	uint32_t program_size;
	uint32_t source;
};

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
	struct cfi_source sources[N_SECTIONS];
	struct entry *entries; /* by start, once they are sorted */
	size_t n;
	size_t cap;
	uint64_t work;
	uint64_t base;
	size_t part_fdes;
	struct part *parts;
	size_t n_parts;
	size_t bytes; /* of the rows of all parts */
};

static const struct rows no_rows;

static int add_entry(struct cfi *c, const struct cfi_fde *fde, uint32_t source)
{
	if (c->n == c->cap) {
		size_t cap = c->cap ? c->cap * 2 : 1024;
		struct entry *new = reallocarray(c->entries, cap, sizeof(*new));

		if (!new)
			return -ENOMEM;
		c->entries = new;
		c->cap = cap;
	}
	c->entries[c->n++] = (struct entry){
		fde->start,
		fde->end,
		(uint32_t)fde->program_size,
		source,
	};
	return 0;
}

/*
 * Makes an entry harmless: its program becomes nops, and of a function's the
 * range in front of it empty, else libdw may find it in place of another one.
 * libdw reads all entries of a section, also those that nobody asks for.
 */
static void blank(const struct cfi_section *s, const uint8_t *start,
		  const uint8_t *end)
{
	if (start && end && start >= s->bytes && end >= start &&
	    end <= s->bytes + s->size)
		memset(s->bytes + (start - s->bytes), DW_CFA_nop,
		       (size_t)(end - start));
}

/* Finds the functions of a section, and blanks out what is not well-formed. */
static int scan(struct cfi *c, uint32_t source)
{
	struct cfi_section *s = &c->sources[source].section;
	const uint8_t *ident = c->sources[source].file;
	Elf_Data data = {.d_buf = s->bytes,
			 .d_type = ELF_T_BYTE,
			 .d_size = s->size,
			 .d_version = EV_CURRENT};
	struct cfi_cie cie = {0};
	Dwarf_Off cie_offset = UINT64_MAX;
	Dwarf_Off next;
	int r;

	for (Dwarf_Off pos = 0; pos < s->size; pos = next) {
		Dwarf_CFI_Entry e;
		Dwarf_CFI_Entry its_cie;
		struct cfi_fde fde;
		uint64_t rows;
		Dwarf_Off ignored;

		next = pos;
		r = dwarf_next_cfi(ident, &data, s->is_eh, pos, &next, &e);
		if (r > 0 || next <= pos)
			break;
		if (r < 0 || c->n >= CFI_FDES_MAX)
			continue;
		if (dwarf_cfi_cie_p(&e)) {
			cfi_check_cie(s, &e.cie, &cie);
			cie_offset = pos;
			if (!cie.valid)
				blank(s, e.cie.initial_instructions,
				      e.cie.initial_instructions_end);
			continue;
		}
		if (e.fde.CIE_pointer != cie_offset) {
			cie_offset = e.fde.CIE_pointer;
			cie.valid = false;
			if (cie_offset < s->size &&
			    dwarf_next_cfi(ident, &data, s->is_eh, cie_offset,
					   &ignored, &its_cie) == 0 &&
			    dwarf_cfi_cie_p(&its_cie))
				cfi_check_cie(s, &its_cie.cie, &cie);
		}
		if (!cfi_read_fde(s, &e.fde, &cie, &fde)) {
			blank(s, e.fde.start, e.fde.end);
			continue;
		}
		if (!cfi_check_program(s->bytes + fde.program, fde.program_size,
				       &rows) ||
		    rows * (fde.program_size + WORK_ROW) > WORK_MAX - c->work) {
			blank(s, e.fde.start, e.fde.end);
			continue;
		}
		c->work += rows * (fde.program_size + WORK_ROW);
		r = add_entry(c, &fde, source);
		if (r)
			return r;
	}
	return 0;
}

static int compile_entry(struct cfi *c, struct rows_builder *b,
			 const struct entry *e, uint64_t start)
{
	Dwarf_CFI *cfi = c->sources[e->source].cfi;
	bool is_start = start == e->start;

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

static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a;
	const struct entry *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return (x->end > y->end) - (x->end < y->end);
}

/* n entries from first on, of what lies behind done. */
static int compile_entries(struct cfi *c, size_t first, size_t n, uint64_t done,
			   struct rows *ret)
{
	struct rows_builder b;
	int r;

	r = rows_builder_init(&b, c->base);
	for (size_t i = first; i < first + n && r == 0; i++) {
		const struct entry *e = &c->entries[i];

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
	for (uint32_t i = 0; i < N_SECTIONS; i++)
		cfi_source_close(&c->sources[i]);
	free(c->entries);
	c->entries = NULL;
}

/* Which functions there are, in order; and libdw is ready. */
static int read_entries(struct cfi *c, const struct elf_file *f)
{
	int r = 0;

	for (uint32_t i = 0; i < N_SECTIONS && r == 0; i++) {
		r = cfi_source_load(&c->sources[i], f, i == EH_FRAME);
		if (r == 0 && c->sources[i].elf)
			r = scan(c, i);
	}
	if (r)
		return r;
	for (uint32_t i = 0; i < N_SECTIONS; i++) {
		if (c->sources[i].elf)
			cfi_source_open(&c->sources[i]);
	}
	if (c->n > 0)
		qsort(c->entries, c->n, sizeof(*c->entries), compare_entries);
	return 0;
}

/*
 * Do functions of one section overlap? No linker makes such a file. Which of
 * two libdw finds depends on what it was asked for before, so these are always
 * asked for in the same order: all at once.
 */
static bool overlap(const struct cfi *c)
{
	uint64_t done[N_SECTIONS] = {0};

	for (size_t i = 0; i < c->n; i++) {
		const struct entry *e = &c->entries[i];

		if (e->start < done[e->source])
			return true;
		done[e->source] = e->end;
	}
	return false;
}

static int make_parts(struct cfi *c)
{
	uint64_t done = 0;

	c->n_parts = (c->n + c->part_fdes - 1) / c->part_fdes;
	c->parts = calloc(c->n_parts + 1, sizeof(*c->parts));
	if (!c->parts)
		return -ENOMEM;
	for (size_t i = 0; i < c->n; i++) {
		const struct entry *e = &c->entries[i];

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
			    min_size(c->part_fdes, c->n - p->first), p->done,
			    &p->rows);
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
	whole = c->n <= whole_max || overlap(c);
	c->part_fdes = whole ? (c->n > 0 ? c->n : 1) : part_fdes;
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
	if (c->entries)
		bytes += c->n * (sizeof(c->entries[0]) + LIBDW_ENTRY_BYTES);
	for (uint32_t i = 0; i < N_SECTIONS; i++)
		bytes += c->sources[i].section.size;
	return bytes;
}

int cfi_compile(const struct elf_file *f, uint64_t base, struct rows *ret)
{
	struct cfi c = {.base = base};
	int r = read_entries(&c, f);

	if (r == 0)
		r = compile_entries(&c, 0, c.n, 0, ret);
	close_sources(&c);
	return r;
}
