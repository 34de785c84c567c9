/*
 * Copies the debug sections of a file, decompressed, to an ELF file in memory, which libdw reads in
 * place of the file (made_elf.h). Used by lines.c.
 */
#ifndef LIB_UNWIND_DWARF_LINES_SOURCE_H
#define LIB_UNWIND_DWARF_LINES_SOURCE_H

#include <elfutils/libdw.h>
#include <stdbool.h>

#include "lib/unwind/elf/elf_file.h"
#include "lib/unwind/elf/made_elf.h"

enum lines_section {
	LINES_INFO,
	LINES_ABBREV,
	LINES_LINE,
	LINES_STR,
	LINES_LINE_STR,
	LINES_RANGES,
	LINES_RNGLISTS,
	LINES_ADDR,
	LINES_STR_OFFSETS,
	LINES_SECTION_N
};

/* The contents of a section. Size 0: the file does not have it. */
struct lines_bytes {
	const uint8_t *bytes;
	size_t size;
};

struct lines_source {
	struct made_elf made;
	Dwarf *dwarf;	/* NULL: no debug information that can be used */
	bool too_large; /* more than max bytes (lines_source_open); then dwarf is NULL */
	struct lines_bytes sections[LINES_SECTION_N]; /* within made, which owns the bytes */
};

/*
 * Reads the sections of f, which is not needed afterwards. max: the most bytes of all sections
 * together, decompressed; beyond it, sets s->too_large. Returns 0, also if s->dwarf is NULL, or
 * -ENOMEM. In both cases the caller calls lines_source_close().
 */
must_check int lines_source_open(struct lines_source *s, const struct elf_file *f, size_t max);
void lines_source_close(struct lines_source *s);

#endif
