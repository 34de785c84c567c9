#include "lib/unwind/cfi_check.h"

#include <dwarf.h>
#include <string.h>

#include "lib/base/util.h"

/* x86-64 has 67 numbered registers without the AVX-512 ones, aarch64 96. */
#define REGISTERS_MAX 128
/* gcc and clang nest to a depth of two. */
#define REMEMBER_MAX 16
/* uleb128 of 64 bits. */
#define LEB_MAX 10

struct cursor {
	const uint8_t *p;
	const uint8_t *end;
};

static bool take_leb(struct cursor *c, uint64_t *ret)
{
	uint64_t value = 0;
	unsigned int shift = 0;

	for (int i = 0; i < LEB_MAX && c->p < c->end; i++, shift += 7) {
		uint8_t byte = *c->p++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		*ret = value;
		return true;
	}
	return false;
}

static bool take_bytes(struct cursor *c, uint64_t n)
{
	if ((uint64_t)(c->end - c->p) < n)
		return false;
	c->p += n;
	return true;
}

static bool take_register(struct cursor *c)
{
	uint64_t reg;

	return take_leb(c, &reg) && reg < REGISTERS_MAX;
}

static bool take_block(struct cursor *c)
{
	uint64_t n;

	return take_leb(c, &n) && take_bytes(c, n);
}

bool cfi_check_program(const uint8_t *p, size_t size, uint64_t *ret_rows)
{
	struct cursor c = {p, p + size};
	uint64_t rows = 1;
	unsigned int nested = 0;
	uint64_t n;

	while (c.p < c.end) {
		uint8_t op = *c.p++;
		bool ok = true;

		switch (op & 0xc0) {
		case DW_CFA_advance_loc:
			rows++;
			continue;
		case DW_CFA_offset:
			if (!take_leb(&c, &n))
				return false;
			continue;
		case DW_CFA_restore:
			continue;
		}
		switch (op) {
		case DW_CFA_nop:
		case DW_CFA_GNU_window_save: /* aarch64: negate_ra_state */
			break;
		case DW_CFA_advance_loc1:
			rows++;
			ok = take_bytes(&c, 1);
			break;
		case DW_CFA_advance_loc2:
			rows++;
			ok = take_bytes(&c, 2);
			break;
		case DW_CFA_advance_loc4:
			rows++;
			ok = take_bytes(&c, 4);
			break;
		case DW_CFA_restore_extended:
		case DW_CFA_undefined:
		case DW_CFA_same_value:
		case DW_CFA_def_cfa_register:
			ok = take_register(&c);
			break;
		case DW_CFA_register:
			ok = take_register(&c) && take_register(&c);
			break;
		case DW_CFA_remember_state:
			ok = ++nested <= REMEMBER_MAX;
			break;
		case DW_CFA_restore_state:
			ok = nested-- > 0;
			break;
		case DW_CFA_offset_extended:
		case DW_CFA_offset_extended_sf:
		case DW_CFA_def_cfa:
		case DW_CFA_def_cfa_sf:
		case DW_CFA_val_offset:
		case DW_CFA_val_offset_sf:
		case DW_CFA_GNU_negative_offset_extended:
			ok = take_register(&c) && take_leb(&c, &n);
			break;
		case DW_CFA_def_cfa_offset:
		case DW_CFA_def_cfa_offset_sf:
		case DW_CFA_GNU_args_size:
			ok = take_leb(&c, &n);
			break;
		case DW_CFA_def_cfa_expression:
			ok = take_block(&c);
			break;
		case DW_CFA_expression:
		case DW_CFA_val_expression:
			ok = take_register(&c) && take_block(&c);
			break;
		default: /* DW_CFA_set_loc, too: no compiler writes it */
			return false;
		}
		if (!ok)
			return false;
	}
	*ret_rows = rows;
	return true;
}

/* Reads size bytes, little-endian. */
static bool take_fixed(struct cursor *c, size_t size, bool is_signed,
		       uint64_t *ret)
{
	uint64_t value = 0;

	if ((size_t)(c->end - c->p) < size)
		return false;
	memcpy(&value, c->p, size);
	if (is_signed && size < 8 && value >> (8 * size - 1))
		value |= UINT64_MAX << (8 * size);
	c->p += size;
	*ret = value;
	return true;
}

bool cfi_read_pointer(const struct cfi_section *s, uint8_t encoding, size_t end,
		      size_t *pos, uint64_t *ret)
{
	struct cursor c = {s->bytes + *pos, s->bytes + end};
	uint64_t place = s->vaddr + *pos;
	uint64_t value = 0;
	bool ok = false;

	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		ok = take_fixed(&c, 8, false, &value);
		break;
	case DW_EH_PE_udata4:
		ok = take_fixed(&c, 4, false, &value);
		break;
	case DW_EH_PE_sdata4:
		ok = take_fixed(&c, 4, true, &value);
		break;
	case DW_EH_PE_udata2:
		ok = take_fixed(&c, 2, false, &value);
		break;
	case DW_EH_PE_sdata2:
		ok = take_fixed(&c, 2, true, &value);
		break;
	}
	if (!ok)
		return false;
	switch (encoding & 0x70) {
	case DW_EH_PE_absptr:
		break;
	case DW_EH_PE_pcrel:
		/* .debug_frame lies nowhere. */
		if (!s->is_eh)
			return false;
		value += place;
		break;
	default: /* textrel, datarel, funcrel: libdw has no base for them */
		return false;
	}
	*pos = (size_t)(c.p - s->bytes);
	*ret = value;
	return (encoding & DW_EH_PE_indirect) == 0;
}

/* The offset of a pointer that dwarf_next_cfi gave into the section. */
static bool offset_of(const struct cfi_section *s, const uint8_t *p,
		      size_t *ret)
{
	if (!p || p < s->bytes || p > s->bytes + s->size)
		return false;
	*ret = (size_t)(p - s->bytes);
	return true;
}

/* Pointers to what else there is of an entry are of no interest here. */
static bool read_augmentation(const struct cfi_section *s, const Dwarf_CIE *cie,
			      size_t pos, size_t end, struct cfi_cie *ret)
{
	for (const char *a = cie->augmentation + 1; *a; a++) {
		uint64_t personality;
		uint8_t encoding;

		if (*a == 'S' || *a == 'B')
			continue;
		if (pos >= end || (*a != 'R' && *a != 'P' && *a != 'L'))
			return false;
		encoding = s->bytes[pos++];
		if (*a == 'R')
			ret->pointer_encoding = encoding;
		else if (*a == 'P' && !cfi_read_pointer(s, encoding & 0x0f, end,
							&pos, &personality))
			return false;
	}
	return true;
}

bool cfi_check_cie(const struct cfi_section *s, const Dwarf_CIE *cie,
		   struct cfi_cie *ret)
{
	const char *a = cie->augmentation;
	uint64_t rows;
	size_t start, end, pos;

	*ret = (struct cfi_cie){.pointer_encoding = DW_EH_PE_absptr};
	if (!offset_of(s, cie->initial_instructions, &start) ||
	    !offset_of(s, cie->initial_instructions_end, &end) || start > end ||
	    !cfi_check_program(s->bytes + start, end - start, &rows))
		return false;
	if (*a == '\0')
		return true;
	/* Without 'z' only compilers of before 2000 had any. */
	ret->sized = *a == 'z';
	return ret->sized && offset_of(s, cie->augmentation_data, &pos) &&
	       read_augmentation(s, cie, pos, end, ret);
}

bool cfi_read_fde(const struct cfi_section *s, const Dwarf_FDE *fde,
		  const struct cfi_cie *cie, struct cfi_fde *ret)
{
	uint64_t augmentation = 0;
	uint64_t range;
	size_t pos;
	size_t end;

	if (!offset_of(s, fde->start, &pos) || !offset_of(s, fde->end, &end) ||
	    pos > end ||
	    !cfi_read_pointer(s, cie->pointer_encoding, end, &pos, &ret->start))
		return false;
	ret->range_at = pos;
	if (!cfi_read_pointer(s, cie->pointer_encoding & 0x0f, end, &pos,
			      &range))
		return false;
	ret->range_size = pos - ret->range_at;
	if (cie->sized) {
		struct cursor c = {s->bytes + pos, s->bytes + end};

		if (!take_leb(&c, &augmentation))
			return false;
		pos = (size_t)(c.p - s->bytes);
	}
	/* A size that is read as negative has no shorter one in its bytes. */
	if (augmentation > end - pos || range == 0 || range > INT64_MAX ||
	    __builtin_add_overflow(ret->start, range, &ret->end))
		return false;
	ret->program = pos + augmentation;
	ret->program_size = end - ret->program;
	return true;
}
