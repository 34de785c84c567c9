/*
 * The debug sections of a file, in a file of their own made in memory, for
 * libdw.
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

struct lines_source {
	struct made_elf made;
	Dwarf *dwarf;	/* NULL: the file has no debug information to use */
	bool too_large; /* it has more than max bytes */
	/* In made; size 0: there is none. */
	struct {
		const uint8_t *bytes;
		size_t size;
	} sections[LINES_SECTION_N];
};

/*
 * Reads at most max bytes. Returns 0, s->dwarf may be NULL then; or -ENOMEM.
 * f may be closed.
 */
must_check int lines_source_open(struct lines_source *s, const struct elf_file *f, size_t max);
void lines_source_close(struct lines_source *s);

#endif
