/*
 * Source lines: finds the file, line and inlined functions at an address, in the
 * DWARF of an image or of its debug file, by libdw. Used for names at the end of
 * a chunk.
 *
 * The file is not trusted: DWARF can be made so that reading it never ends, and
 * libdw has few limits. So:
 * - libdw gets an ELF file made in memory with the needed sections only
 *   (lines_source.h). It opens no other file. So addresses whose debug information
 *   is in another file (dwz, split units in .dwo files) have no lines.
 * - Tables that would make a single call of libdw endless are refused before
 *   (lines_check.h).
 * - Between calls memory and time are counted (struct lines_budget, lines_unit.h).
 *   Once a limit is reached, nothing more is read. Addresses in units that were not
 *   read until then have no lines.
 *
 * lines_open() lists the units (compilation units, one for each source file). The
 * functions and the line table of a unit are read when an address in it is looked
 * up for the first time. Not thread-safe.
 */
#ifndef LIB_UNWIND_DWARF_LINES_H
#define LIB_UNWIND_DWARF_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/clock.h"
#include "lib/base/util.h"
#include "lib/unwind/elf/elf_file.h"
#include "lib/unwind/unwind.h"

/*
 * Bytes of all sections together, decompressed. A larger file has no lines. It is half of the
 * unwind_cache_options.max_bytes that sentry-profd-unwind sets for all images together.
 */
#define LINES_SECTIONS_MAX (128u << 20)
/* Address ranges of units, functions and inlined functions, together. */
#define LINES_RANGES_MAX (1u << 20)
/* Bytes of decoded line tables, approximately. */
#define LINES_TABLES_MAX (64u << 20)
/*
 * Bytes of the paths of the files in line tables: enough for some 400 units, each with 2,000 files
 * and a longest directory of 150 bytes.
 */
#define LINES_PATHS_MAX (128u << 20)
/* Bytes of abbreviations (.debug_abbrev), which take ten times that when they are decoded. */
#define LINES_ABBREVS_MAX (16u << 20)
/* Inlined functions within one function that are searched for an address. */
#define LINES_INLINED_MAX 65536
/*
 * Processor time for one image: ten times what an image needs whose sections have
 * LINES_SECTIONS_MAX bytes and come from a compiler.
 */
#define LINES_TIME_MAX_NS (2 * NS_PER_SEC)

struct lines;

/*
 * Reads the sections of f, which is not needed afterwards, and lists the units. *ret is NULL if f
 * has no debug information that can be used; only lines_free() accepts NULL. If the sections are
 * too large, *ret has no units and lines_is_incomplete() is true. now_ns returns the processor time
 * that this process has used; NULL: no time limit. Returns 0 or -ENOMEM. The caller calls
 * lines_free().
 */
must_check int lines_open(const struct elf_file *f, clock_fn now_ns, struct lines **ret);
void lines_free(struct lines *l);

/* Returns the memory in use, in bytes, approximately. */
size_t lines_bytes(const struct lines *l);

/* Returns true if a limit was reached, so that not everything was read. */
bool lines_is_incomplete(const struct lines *l);

/*
 * Finds the lines of vaddr, an address of the ELF file: one for the function and one for each
 * function that is inlined there, in the order of unwind_lines_at(). l owns the texts, which are
 * valid until lines_free(). Returns the number of lines; 0 if no unit covers vaddr, or the unit
 * cannot be read, for instance because a limit was reached.
 */
size_t lines_find(struct lines *l, uint64_t vaddr, struct unwind_line ret[UNWIND_LINES_MAX]);

#endif
