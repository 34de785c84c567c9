#include "lib/unwind/cfi_entries.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/unwind/cfi_check.h"

/*
 * libdw executes a function's program from its start for each of its rows:
 * the sum of rows times bytes of program. libLLVM-14 takes 10^8; this ends a
 * file made to be slow after a few seconds.
 */
#define WORK_MAX (UINT64_C(1) << 30)
/* What a row costs beside its program's bytes, in the same unit. */
#define WORK_ROW 64

/* The CIEs that were passed, by offset: only to those an FDE may point. */
struct passed {
	Dwarf_Off offset;
	struct cfi_cie cie;
};

struct cies {
	struct passed *v;
	size_t n;
	size_t cap;
	size_t last; /* the one that was looked for last */
};

/*
 * Makes the entry at pos one that libdw passes over: a CIE of a version that
 * there is not. As anything else it would be read by libdw, which reads all
 * entries of a section, also those that nobody asks for.
 */
static void strike_out(struct cfi_section *s, size_t pos)
{
	uint32_t length;
	bool is_64_bit;
	size_t id_size;
	uint8_t *id;

	memcpy(&length, s->bytes + pos, sizeof(length));
	is_64_bit = length == UINT32_MAX;
	id_size = is_64_bit ? 8 : 4;
	id = s->bytes + pos + (is_64_bit ? 12 : 4);
	memset(id, s->is_eh ? 0 : 0xff, id_size);
	id[id_size] = 0;
}

/* Those of a section are passed in order of their offsets. */
static int add_cie(struct cies *c, Dwarf_Off offset, const struct cfi_cie *cie)
{
	int r = array_grow(c->v, c->n, c->cap);

	if (r == 0)
		c->v[c->n++] = (struct passed){offset, *cie};
	return r;
}

static const struct cfi_cie *find_cie(struct cies *c, Dwarf_Off offset)
{
	size_t lo = 0;
	size_t hi = c->n;

	if (c->last < c->n && c->v[c->last].offset == offset)
		return &c->v[c->last].cie;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (c->v[mid].offset < offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == c->n || c->v[lo].offset != offset)
		return NULL;
	c->last = lo;
	return &c->v[lo].cie;
}

/* Returns 0, -EINVAL if it is to be struck out, -ENOMEM. */
static int take_cie(struct cies *c, const struct cfi_section *s, Dwarf_Off pos,
		    const Dwarf_CIE *cie)
{
	struct cfi_cie read;

	if (c->n >= CFI_FDES_MAX || !cfi_check_cie(s, cie, &read))
		return -EINVAL;
	return add_cie(c, pos, &read);
}

/* As take_cie. */
static int take_fde(struct cfi_entries *e, struct cies *c,
		    const struct cfi_section *s, uint16_t source,
		    const Dwarf_FDE *fde)
{
	const struct cfi_cie *cie = find_cie(c, fde->CIE_pointer);
	struct cfi_fde read;
	uint64_t rows, work;
	int r;

	if (e->n >= CFI_FDES_MAX || !cie || !cfi_read_fde(s, fde, cie, &read) ||
	    !cfi_check_program(s->bytes + read.program, read.program_size,
			       &rows))
		return -EINVAL;
	work = rows * (read.program_size + WORK_ROW);
	if (work > WORK_MAX - e->work)
		return -EINVAL;
	r = array_grow(e->v, e->n, e->cap);
	if (r)
		return r;
	e->work += work;
	e->v[e->n++] = (struct cfi_entry){
		.start = read.start,
		.end = read.end,
		.range_at = (uint32_t)read.range_at,
		.range_size = (uint16_t)read.range_size,
		.source = source,
	};
	return 0;
}

int cfi_entries_add(struct cfi_entries *e, struct cfi_source *source,
		    uint16_t number)
{
	struct cfi_section *s = &source->section;
	Elf_Data data = {.d_buf = s->bytes,
			 .d_type = ELF_T_BYTE,
			 .d_size = s->size,
			 .d_version = EV_CURRENT};
	struct cies cies = {0};
	Dwarf_Off next;
	int r = 0;

	for (Dwarf_Off pos = 0; pos < s->size; pos = next) {
		Dwarf_CFI_Entry entry;

		next = pos;
		r = dwarf_next_cfi(source->file, &data, s->is_eh, pos, &next,
				   &entry);
		if (r > 0 || next <= pos)
			break;
		if (r < 0)
			continue;
		if (dwarf_cfi_cie_p(&entry))
			r = take_cie(&cies, s, pos, &entry.cie);
		else
			r = take_fde(e, &cies, s, number, &entry.fde);
		if (r == -ENOMEM)
			break;
		if (r)
			strike_out(s, pos);
	}
	free(cies.v);
	return r == -ENOMEM ? r : 0;
}

/* Of those that start together the last one counts: the first in the file. */
static int compare(const void *a, const void *b)
{
	const struct cfi_entry *x = a;
	const struct cfi_entry *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return (x->range_at < y->range_at) - (x->range_at > y->range_at);
}

/* What is cut off all of its length covers nothing, for libdw as well. */
static void cut(struct cfi_entry *e, struct cfi_section *s, uint64_t end)
{
	uint64_t range = end - e->start;

	e->end = end;
	memcpy(s->bytes + e->range_at, &range, e->range_size);
}

void cfi_entries_sort(struct cfi_entries *e,
		      struct cfi_source sources[CFI_SECTIONS])
{
	uint64_t next[CFI_SECTIONS] = {UINT64_MAX, UINT64_MAX};

	if (e->n > 0)
		qsort(e->v, e->n, sizeof(*e->v), compare);
	for (size_t i = e->n; i-- > 0;) {
		struct cfi_entry *x = &e->v[i];
		uint64_t end = min_u64(next[x->source], next[CFI_EH_FRAME]);

		if (x->end > end)
			cut(x, &sources[x->source].section, end);
		next[x->source] = x->start;
	}
}

void cfi_entries_fini(struct cfi_entries *e)
{
	free(e->v);
	memset(e, 0, sizeof(*e));
}
