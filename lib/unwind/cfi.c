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

struct compiler {
	struct cfi_source sources[N_SECTIONS];
	struct entry *entries;
	size_t n;
	size_t cap;
	uint64_t work;
	struct rows_builder b;
};

static int add_entry(struct compiler *c, const struct cfi_fde *fde,
		     uint32_t source)
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
 * Makes an entry harmless: its program becomes nops. libdw reads all entries
 * of a section, also those that nobody asks for.
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
static int scan(struct compiler *c, uint32_t source)
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
			blank(s, s->bytes + fde.program, e.fde.end);
			continue;
		}
		c->work += rows * (fde.program_size + WORK_ROW);
		r = add_entry(c, &fde, source);
		if (r)
			return r;
	}
	return 0;
}

static int compile_entry(struct compiler *c, const struct entry *e,
			 uint64_t start)
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
		r = cfi_read_rule(&c->b, frame, is_signal, &rule);
		free(frame);
		end = min_u64(end, e->end);
		if (r == 0)
			r = rows_add(&c->b, start, end, is_start, &rule);
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

static int compile_entries(struct compiler *c)
{
	uint64_t done = 0;
	int r;

	for (uint32_t i = 0; i < N_SECTIONS; i++) {
		if (c->sources[i].elf)
			cfi_source_open(&c->sources[i]);
	}
	if (c->n > 0)
		qsort(c->entries, c->n, sizeof(*c->entries), compare_entries);
	for (size_t i = 0; i < c->n; i++) {
		const struct entry *e = &c->entries[i];

		if (!c->sources[e->source].cfi || e->end <= done)
			continue;
		r = compile_entry(c, e, max_u64(e->start, done));
		if (r)
			return r == -E2BIG ? 0 : r;
		done = e->end;
	}
	return 0;
}

int cfi_compile(const struct elf_file *f, uint64_t base, struct rows *ret)
{
	struct compiler c;
	int r;

	memset(&c, 0, sizeof(c));
	r = rows_builder_init(&c.b, base);
	if (r)
		return r;
	for (uint32_t i = 0; i < N_SECTIONS && r == 0; i++) {
		r = cfi_source_load(&c.sources[i], f, i == EH_FRAME);
		if (r == 0 && c.sources[i].elf)
			r = scan(&c, i);
	}
	if (r == 0)
		r = compile_entries(&c);
	if (r == 0)
		r = rows_finish(&c.b, ret);
	for (uint32_t i = 0; i < N_SECTIONS; i++)
		cfi_source_close(&c.sources[i]);
	free(c.entries);
	rows_builder_fini(&c.b);
	return r;
}
