/*
 * Checks DWARF tables of untrusted files before libdw reads them, because libdw trusts the sizes
 * and counts in them. Used by lines.c.
 *
 * Sources: DWARF 5, 6.2.4 and 7.5.3; DWARF 4, 6.2.4; libdw/dwarf_getsrclines.c of elfutils.
 */
#ifndef LIB_UNWIND_DWARF_LINES_CHECK_H
#define LIB_UNWIND_DWARF_LINES_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/unwind/dwarf/lines_source.h"

/*
 * Bytes of the line table of one unit. Each byte can become a row, which takes
 * 100 bytes during decoding. Known units have some hundred kilobytes.
 */
#define LINES_PROGRAM_MAX (2u << 20)

/*
 * Checks the line table at this offset of .debug_line. libdw may decode the table if the function
 * returns true and *ret_paths is at most max.
 *
 * Returns false if the table exceeds LINES_PROGRAM_MAX, if its header, directories or files reach
 * beyond the table, or if DWARF does not permit the form of one of their values. The header is
 * checked because libdw 0.192 to 0.195 trusts the length that the header states, and reads
 * directories and files up to there, even beyond the section.
 *
 * With true, *ret_paths is an upper bound of the memory, in bytes, for the paths of all files:
 * libdw makes each of a directory and a name. comp_dir is the length of the unit's DW_AT_comp_dir,
 * which older tables use as a directory. Above max the check ends, and *ret_paths is some number
 * above max. Reason: a table of 2 MB can have 500,000 directories, each of which refers to the same
 * name of 100 MB in another section.
 */
bool lines_check_program(const struct lines_bytes sections[LINES_SECTION_N], uint64_t offset,
			 size_t comp_dir, size_t max, uint64_t *ret_paths);

/*
 * Returns the number of bytes of the abbreviations at this offset of .debug_abbrev (section). libdw
 * may read all of them for each unit that refers to them. Stops counting at max or a little above
 * it. Returns 0 if the offset is outside of the section.
 */
size_t lines_check_abbrevs(const uint8_t *section, size_t size, uint64_t offset, size_t max);

#endif
