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
	uint64_t version, length;
	const uint8_t *start;
	bool is_64;

	/* A missing section must not be dereferenced. */
	if (size == 0)
		return false;
	r.end += size;
	skip(&r, offset);
	is_64 = enter_unit(&r);
	version = read_fixed(&r, 2);
	if (version >= 5)
		skip(&r, 2); /* sizes of addresses and of selectors */
	length = read_fixed(&r, is_64 ? 8 : 4);
	start = r.at;
	/* minimum_instruction_length, maximum_operations, default_is_stmt, line_base, line_range */
	skip(&r, version >= 4 ? 5 : 4);
	skip(&r, read_fixed(&r, 1) - 1); /* opcode_base and the lengths of the opcodes */
	return !r.failed && length >= (uint64_t)(r.at - start) &&
	       length <= (uint64_t)(r.end - start);
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
