/*
 * Where an address stands in the source: file and line, and the functions that
 * were inlined there, from an image's DWARF, by libdw.
 *
 * libdw sees a file made in memory of nothing but the sections that are
 * needed, so it opens none of its own: what dwz moved to another file, and
 * split units (.dwo), are not followed. A stranger's DWARF can be made to cost
 * without end, and libdw bounds little. So what would make a single call of it
 * endless is checked before (lines_check.h), and between the calls memory and
 * time are counted. What was not read when they are used up has no lines.
 *
 * Read lazily: first which unit has which addresses, then a unit's functions
 * and lines when an address of it is asked for, each once.
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
 * All sections together, unpacked: half of what a cache has for all images. A
 * larger file has no lines.
 */
#define LINES_SECTIONS_MAX (128u << 20)
/* Address ranges of units, of functions and of what is inlined. */
#define LINES_RANGES_MAX (1u << 20)
/* Memory for decoded line tables, about. */
#define LINES_TABLES_MAX (64u << 20)
/* Abbreviations, which take ten times their bytes when they are decoded. */
#define LINES_ABBREVS_MAX (16u << 20)
/* Inlined functions within one that are looked through for an address. */
#define LINES_INLINED_MAX 65536
/*
 * What reading an image may cost altogether: ten times what LINES_SECTIONS_MAX
 * of a compiler's take.
 */
#define LINES_TIME_MAX_NS (2 * NS_PER_SEC)

struct lines;

/*
 * Reads the sections of f, which may be closed then. *ret is NULL if it has no
 * debug information; of what is too large nothing is read, and it is cut.
 * now_ns is the processor time that was used; NULL: time is no limit. Returns 0
 * or -ENOMEM.
 */
must_check int lines_open(const struct elf_file *f, clock_fn now_ns, struct lines **ret);
void lines_free(struct lines *l); /* takes NULL */

/* The memory that it takes, about. */
size_t lines_bytes(const struct lines *l);

/* Some limit was reached: not everything was read. */
bool lines_is_incomplete(const struct lines *l);

/*
 * As unwind_lines_at; the texts are l's. Returns their number, 0 if nothing is
 * known.
 */
size_t lines_find(struct lines *l, uint64_t vaddr, struct unwind_line ret[UNWIND_LINES_MAX]);

#endif
