#include "lib/unwind/dwarf/lines_check.h"

#include <dwarf.h>
#include <string.h>

#include "lib/base/leb128.h"
#include "lib/base/util.h"

/* A cursor over bytes that never passes their end. */
struct reader {
	const uint8_t *at;
	const uint8_t *end;
	bool failed;
};

/* A section that the file does not have has no offset that can be read. */
static struct reader reader_at(const uint8_t *section, size_t size, uint64_t offset)
{
	if (offset >= size)
		return (struct reader){.failed = true};
	return (struct reader){section + offset, section + size, false};
}

static void skip(struct reader *r, uint64_t n)
{
	if (r->failed || (uint64_t)(r->end - r->at) < n)
		r->failed = true;
	else
		r->at += n;
}

/* Returns 0 if fewer bytes are left. n is at most 8. */
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

	if (!r->failed)
		r->failed = !leb128_read(&r->at, r->end, &value);
	return r->failed ? 0 : value;
}

/* Reads a text up to its NUL. Returns its length; 0 if there is no NUL. */
static size_t read_text(struct reader *r)
{
	size_t n;

	if (r->failed)
		return 0;
	n = strnlen((const char *)r->at, (size_t)(r->end - r->at));
	skip(r, n + 1);
	return r->failed ? 0 : n;
}

/* Reads the length of the unit and narrows r to it. Returns true for 64-bit DWARF. */
static bool enter_unit(struct reader *r)
{
	uint64_t length = read_fixed(r, 4);
	bool is_64 = length == UINT32_MAX;

	if (is_64)
		length = read_fixed(r, 8);
	if (r->failed || length > (uint64_t)(r->end - r->at) || length > LINES_PROGRAM_MAX)
		r->failed = true;
	else
		r->end = r->at + length;
	return is_64;
}

/* The directories and files of a line table. */
struct paths {
	const struct lines_bytes *sections;
	bool is_64;
	size_t max;
	uint64_t bytes;	  /* of all names that were read, with a NUL each */
	uint64_t longest; /* of the directories */
	uint64_t n_files;
};

static void add_directory(struct paths *p, size_t length)
{
	p->bytes += length + 1;
	p->longest = max_u64(p->longest, length);
}

static void add_file(struct paths *p, size_t length)
{
	p->bytes += length + 1;
	p->n_files++;
}

/* Each file has the longest directory and a slash in front. */
static uint64_t paths_bytes(const struct paths *p)
{
	/* No overflow: there are fewer than 2^32 files, and a section has fewer than 2^31 bytes. */
	return p->bytes + p->n_files * (p->longest + 1);
}

static bool is_within(const struct paths *p)
{
	return paths_bytes(p) <= p->max;
}

/* Before version 5: texts up to an empty one, and three numbers behind that of each file. */
static void read_old_paths(struct reader *r, struct paths *p)
{
	size_t n;

	while ((n = read_text(r)) > 0 && is_within(p))
		add_directory(p, n);
	while ((n = read_text(r)) > 0 && is_within(p)) {
		add_file(p, n);
		for (int i = 0; i < 3; i++)
			(void)read_uleb(r);
	}
}

/* Returns the length of a text in another section, or max if it is longer. */
static size_t text_at(const struct paths *p, enum lines_section section, uint64_t offset)
{
	const struct lines_bytes *s = &p->sections[section];

	if (offset >= s->size)
		return 0;
	return strnlen((const char *)s->bytes + offset, min_size(s->size - offset, p->max));
}

/* Reads a name. Returns its length. */
static size_t read_name(struct reader *r, const struct paths *p, uint64_t form)
{
	const size_t offset_size = p->is_64 ? 8 : 4;

	switch (form) {
	case DW_FORM_string:
		return read_text(r);
	case DW_FORM_line_strp:
		return text_at(p, LINES_LINE_STR, read_fixed(r, offset_size));
	case DW_FORM_strp:
		return text_at(p, LINES_STR, read_fixed(r, offset_size));
	default:
		r->failed = true;
		return 0;
	}
}

/* Skips a value, of a form that the DWARF standard permits in line tables. */
static void skip_value(struct reader *r, const struct paths *p, uint64_t form)
{
	switch (form) {
	case DW_FORM_string:
		(void)read_text(r);
		break;
	case DW_FORM_line_strp:
	case DW_FORM_strp:
		skip(r, p->is_64 ? 8 : 4);
		break;
	case DW_FORM_udata:
		(void)read_uleb(r);
		break;
	case DW_FORM_data1:
		skip(r, 1);
		break;
	case DW_FORM_data2:
		skip(r, 2);
		break;
	case DW_FORM_data4:
		skip(r, 4);
		break;
	case DW_FORM_data8:
		skip(r, 8);
		break;
	case DW_FORM_data16:
		skip(r, 16);
		break;
	case DW_FORM_block:
		skip(r, read_uleb(r));
		break;
	default:
		r->failed = true;
	}
}

/* Version 5: the types and forms of an entry's values, the number of entries, and these. */
static void read_entries(struct reader *r, struct paths *p, void (*add)(struct paths *, size_t))
{
	struct {
		uint64_t type, form;
	} v[UINT8_MAX];
	const size_t n_values = read_fixed(r, 1);
	uint64_t n;

	for (size_t i = 0; i < n_values; i++) {
		v[i].type = read_uleb(r);
		v[i].form = read_uleb(r);
	}
	/* Each value has a byte at least, and libdw refuses entries without values. */
	for (n = read_uleb(r); n > 0 && n_values > 0 && !r->failed && is_within(p); n--)
		for (size_t i = 0; i < n_values && is_within(p); i++)
			if (v[i].type == DW_LNCT_path)
				add(p, read_name(r, p, v[i].form));
			else
				skip_value(r, p, v[i].form);
}

/*
 * Adds the files that the program defines: DW_LNE_define_file. Not all that looks like one need be
 * one, since the instructions before it are not decoded.
 */
static void add_defined(const struct reader *program, struct paths *p)
{
	const uint8_t *at = program->at, *end = program->end;

	/* 0, a length, the instruction, and a name. */
	while (end - at > 3 && (at = memchr(at, 0, (size_t)(end - at - 3))) != NULL) {
		if (at[2] == DW_LNE_define_file)
			add_file(p, strnlen((const char *)at + 3, (size_t)(end - at - 3)));
		at++;
	}
}

bool lines_check_program(const struct lines_bytes sections[LINES_SECTION_N], uint64_t offset,
			 size_t comp_dir, size_t max, uint64_t *ret_paths)
{
	struct reader r = reader_at(sections[LINES_LINE].bytes, sections[LINES_LINE].size, offset);
	struct paths p = {.sections = sections, .max = max, .longest = comp_dir};
	struct reader program;
	uint64_t version, length;

	p.is_64 = enter_unit(&r);
	version = read_fixed(&r, 2);
	if (version >= 5)
		skip(&r, 2); /* sizes of addresses and of selectors */
	length = read_fixed(&r, p.is_64 ? 8 : 4);
	program = r;
	skip(&program, length);
	/* minimum_instruction_length, maximum_operations, default_is_stmt, line_base, line_range */
	skip(&r, version >= 4 ? 5 : 4);
	skip(&r, read_fixed(&r, 1) - 1); /* opcode_base and the lengths of the opcodes */
	if (r.failed || program.failed || r.at > program.at)
		return false;
	if (version >= 5) {
		read_entries(&r, &p, add_directory);
		read_entries(&r, &p, add_file);
	} else {
		read_old_paths(&r, &p);
	}
	add_defined(&program, &p);
	*ret_paths = paths_bytes(&p);
	return !r.failed || *ret_paths > max;
}

size_t lines_check_abbrevs(const uint8_t *section, size_t size, uint64_t offset, size_t max)
{
	struct reader r = reader_at(section, size, offset);
	const uint8_t *start = r.at;

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
