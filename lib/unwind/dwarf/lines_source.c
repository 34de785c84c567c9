#include "lib/unwind/dwarf/lines_source.h"

#include <stdlib.h>
#include <string.h>

/* Left out: references to other files (.gnu_debugaltlink), and sections that are not needed. */
static const char *const names[LINES_SECTION_N] = {
	[LINES_INFO] = ".debug_info",
	[LINES_ABBREV] = ".debug_abbrev",
	[LINES_LINE] = ".debug_line",
	[LINES_STR] = ".debug_str",
	[LINES_LINE_STR] = ".debug_line_str",
	[LINES_RANGES] = ".debug_ranges",
	[LINES_RNGLISTS] = ".debug_rnglists",
	[LINES_ADDR] = ".debug_addr",
	[LINES_STR_OFFSETS] = ".debug_str_offsets",
};

struct parts {
	uint8_t *bytes[LINES_SECTION_N];
	size_t sizes[LINES_SECTION_N];
	size_t total;
};

static int read_parts(const struct elf_file *f, size_t max, struct parts *p)
{
	for (size_t i = 0; i < LINES_SECTION_N; i++) {
		GElf_Shdr shdr;
		Elf_Scn *scn = elf_file_section(f, names[i], &shdr);
		int r;

		if (!scn)
			continue;
		r = elf_file_contents(f, scn, &shdr, max - p->total, &p->bytes[i], &p->sizes[i]);
		if (r) {
			p->bytes[i] = NULL;
			p->sizes[i] = 0;
			return r;
		}
		p->total += p->sizes[i];
	}
	return p->sizes[LINES_INFO] > 0 ? 0 : -ENODATA;
}

/* Frees each part when it is copied. Otherwise large files would need their size twice. */
static int build(struct lines_source *s, struct parts *p)
{
	struct made_section sections[LINES_SECTION_N];
	int r;

	for (size_t i = 0; i < LINES_SECTION_N; i++)
		sections[i] = (struct made_section){.name = names[i], .size = p->sizes[i]};
	r = made_elf_open(&s->made, sections, LINES_SECTION_N);
	for (size_t i = 0; i < LINES_SECTION_N && r == 0; i++) {
		if (sections[i].size == 0)
			continue;
		memcpy(sections[i].bytes, p->bytes[i], p->sizes[i]);
		free(p->bytes[i]);
		p->bytes[i] = NULL;
		s->sections[i].bytes = sections[i].bytes;
		s->sections[i].size = sections[i].size;
	}
	return r;
}

int lines_source_open(struct lines_source *s, const struct elf_file *f, size_t max)
{
	struct parts p;
	int r;

	memset(s, 0, sizeof(*s));
	memset(&p, 0, sizeof(p));
	r = read_parts(f, max, &p);
	if (r == 0)
		r = build(s, &p);
	for (size_t i = 0; i < LINES_SECTION_N; i++)
		free(p.bytes[i]);
	s->too_large = r == -E2BIG;
	if (r)
		return r == -ENOMEM ? r : 0;
	s->dwarf = dwarf_begin_elf(s->made.elf, DWARF_C_READ, NULL);
	return 0;
}

void lines_source_close(struct lines_source *s)
{
	if (s->dwarf)
		(void)dwarf_end(s->dwarf);
	made_elf_close(&s->made);
	memset(s, 0, sizeof(*s));
}
