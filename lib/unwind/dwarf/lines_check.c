#include "lib/unwind/dwarf/lines_check.h"

#include <dwarf.h>
#include <string.h>

#include "lib/base/leb128.h"

/* A cursor over bytes that never passes their end. */
struct reader {
	const uint8_t *at;
	const uint8_t *end;
	bool failed;
};

static void skip(struct reader *r, uint64_t n)
{
	if ((uint64_t)(r->end - r->at) < n) {
		r->failed = true;
		r->at = r->end;
	} else {
		r->at += n;
	}
}

/* Returns 0 if fewer bytes are left. */
static uint64_t read_fixed(struct reader *r, size_t n)
{
	const uint8_t *at = r->at;
	uint64_t value = 0;

	skip(r, n);
	if (!r->failed)
		memcpy(&value, at, n);
	return value;
}

static uint64_t read_uleb(struct reader *r)
{
	uint64_t value;

	r->failed |= !leb128_read(&r->at, r->end, &value);
	return r->failed ? 0 : value;
}

/* Skips a field of a directory or file entry in a table of version 5. */
static void skip_form(struct reader *r, uint64_t form, bool is_64)
{
	static const uint8_t sizes[] = {
		[DW_FORM_data1] = 1, [DW_FORM_data2] = 2,   [DW_FORM_data4] = 4,
		[DW_FORM_data8] = 8, [DW_FORM_data16] = 16,
	};
	const uint8_t *nul;

	switch (form) {
	case DW_FORM_string:
		nul = memchr(r->at, 0, (size_t)(r->end - r->at));
		skip(r, nul ? (uint64_t)(nul - r->at) + 1 : UINT64_MAX);
		break;
	case DW_FORM_line_strp:
	case DW_FORM_strp:
		skip(r, is_64 ? 8 : 4);
		break;
	case DW_FORM_udata:
		(void)read_uleb(r);
		break;
	case DW_FORM_block:
		skip(r, read_uleb(r));
		break;
	default: /* a form of fixed size; other forms are not written by compilers */
		if (form < sizeof(sizes) && sizes[form] > 0)
			skip(r, sizes[form]);
		else
			r->failed = true;
	}
}

/*
 * Skips a list of directories or files: their forms, their number, and the entries. Each entry
 * must have bytes, which bounds their number.
 */
static void skip_entries(struct reader *r, bool is_64)
{
	uint64_t forms[255];
	size_t n_forms = (size_t)read_fixed(r, 1);
	uint64_t n;

	for (size_t i = 0; i < n_forms; i++) {
		(void)read_uleb(r);
		forms[i] = read_uleb(r);
	}
	n = read_uleb(r);
	if (n > 0 && n_forms == 0)
		r->failed = true;
	for (uint64_t i = 0; i < n && !r->failed; i++)
		for (size_t k = 0; k < n_forms; k++)
			skip_form(r, forms[k], is_64);
}

/* Reads the length of the unit and narrows r to it. Returns true for 64-bit DWARF. */
static bool enter_unit(struct reader *r)
{
	uint64_t length = read_fixed(r, 4);
	bool is_64 = length == UINT32_MAX;

	if (is_64)
		length = read_fixed(r, 8);
	if (length > (uint64_t)(r->end - r->at) || length > LINES_PROGRAM_MAX)
		r->failed = true;
	else
		r->end = r->at + length;
	return is_64;
}

bool lines_check_program(const uint8_t *section, size_t size, uint64_t offset)
{
	struct reader r = {section, section, false};
	uint64_t version, max_ops = 1, range, opcode_base;
	bool is_64;

	/* A missing section must not be dereferenced. */
	if (size == 0)
		return false;
	r.end += size;
	skip(&r, offset);
	is_64 = enter_unit(&r);
	version = read_fixed(&r, 2);
	if (r.failed || version < 2 || version > 5)
		return false;
	if (version >= 5)
		skip(&r, 2); /* sizes of addresses and of selectors */
	skip(&r, is_64 ? 8 : 4);
	skip(&r, 1); /* minimum_instruction_length */
	if (version >= 4)
		max_ops = read_fixed(&r, 1);
	skip(&r, 2); /* default_is_stmt, line_base */
	range = read_fixed(&r, 1);
	opcode_base = read_fixed(&r, 1);
	if (r.failed || max_ops == 0 || range == 0 || opcode_base == 0)
		return false;
	skip(&r, opcode_base - 1);
	/* Before version 5 the lists end with an empty string, so they are bounded. */
	if (version >= 5) {
		skip_entries(&r, is_64);
		skip_entries(&r, is_64);
	}
	return !r.failed;
}

size_t lines_check_abbrevs(const uint8_t *section, size_t size, uint64_t offset, size_t max)
{
	struct reader r = {section, section, false};
	const uint8_t *start;

	if (size == 0)
		return 0;
	r.end += size;
	skip(&r, offset);
	start = r.at;
	while (!r.failed && (size_t)(r.at - start) < max) {
		uint64_t name, form;

		if (read_uleb(&r) == 0)
			break;
		(void)read_uleb(&r); /* the tag */
		skip(&r, 1);	     /* has children */
		do {
			name = read_uleb(&r);
			form = read_uleb(&r);
			if (form == DW_FORM_implicit_const)
				(void)read_uleb(&r);
		} while (!r.failed && (name != 0 || form != 0));
	}
	return (size_t)(r.at - start);
}
