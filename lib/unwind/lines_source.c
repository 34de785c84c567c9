#include "lib/unwind/lines_source.h"

#include <stdlib.h>
#include <string.h>

#include "lib/unwind/cpu.h"

/*
 * Not among them: what leads to other files (.gnu_debugaltlink), and what
 * libdw would read for no use here.
 */
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

/* All names, each with its NUL, and those of sections 0 and .shstrtab. */
#define NAMES_SIZE 256

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
		r = elf_file_contents(f, scn, &shdr, max - p->total,
				      &p->bytes[i], &p->sizes[i]);
		if (r) {
			p->bytes[i] = NULL;
			p->sizes[i] = 0;
			return r;
		}
		p->total += p->sizes[i];
	}
	return p->sizes[LINES_INFO] > 0 ? 0 : -ENODATA;
}

/* Header, sections, their names, section headers. */
static int build(struct lines_source *s, const struct parts *p)
{
	Elf64_Shdr shdrs[LINES_SECTION_N + 2];
	char texts[NAMES_SIZE] = "";
	size_t n = 1, texts_size = 1, pos = sizeof(Elf64_Ehdr);
	Elf64_Ehdr ehdr = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
			    ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = CPU_ELF_MACHINE,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_shentsize = sizeof(Elf64_Shdr),
	};

	s->size = align_up(pos + p->total + NAMES_SIZE, 8) + sizeof(shdrs);
	s->file = calloc(1, s->size);
	if (!s->file)
		return -ENOMEM;
	memset(shdrs, 0, sizeof(shdrs));
	for (size_t i = 0; i < LINES_SECTION_N; i++) {
		size_t size = strlen(names[i]) + 1;

		if (p->sizes[i] == 0)
			continue;
		memcpy(s->file + pos, p->bytes[i], p->sizes[i]);
		memcpy(texts + texts_size, names[i], size);
		shdrs[n++] = (Elf64_Shdr){.sh_name = (Elf64_Word)texts_size,
					  .sh_type = SHT_PROGBITS,
					  .sh_offset = pos,
					  .sh_size = p->sizes[i],
					  .sh_addralign = 1};
		s->sections[i].bytes = s->file + pos;
		s->sections[i].size = p->sizes[i];
		texts_size += size;
		pos += p->sizes[i];
	}
	memcpy(s->file + pos, texts, sizeof(texts));
	shdrs[n++] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
				  .sh_offset = pos,
				  .sh_size = sizeof(texts),
				  .sh_addralign = 1};
	pos = align_up(pos + sizeof(texts), 8);
	ehdr.e_shoff = pos;
	ehdr.e_shnum = (Elf64_Half)n;
	ehdr.e_shstrndx = (Elf64_Half)(n - 1);
	memcpy(s->file + pos, shdrs, n * sizeof(shdrs[0]));
	memcpy(s->file, &ehdr, sizeof(ehdr));
	return 0;
}

int lines_source_open(struct lines_source *s, const struct elf_file *f,
		      size_t max)
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
	s->elf = elf_memory((char *)s->file, s->size);
	if (s->elf)
		s->dwarf = dwarf_begin_elf(s->elf, DWARF_C_READ, NULL);
	return 0;
}

void lines_source_close(struct lines_source *s)
{
	if (s->dwarf)
		(void)dwarf_end(s->dwarf);
	if (s->elf)
		(void)elf_end(s->elf);
	free(s->file);
	memset(s, 0, sizeof(*s));
}
