/*
 * Checks of DWARF tables before libdw reads them: libdw trusts the sizes and
 * counts that they give.
 *
 * Source: DWARF 5, 6.2.4 and 7.5.3.
 */
#ifndef LIB_UNWIND_DWARF_LINES_CHECK_H
#define LIB_UNWIND_DWARF_LINES_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Bytes of the line table of one unit. Each byte can become a row, which takes
 * 100 bytes during decoding. Known units have some hundred kilobytes.
 */
#define LINES_PROGRAM_MAX (2u << 20)

/*
 * Returns true if libdw may decode the line table at this offset of .debug_line: if the length of
 * the table is below the limit, and the length of its header fits into the table. libdw 0.192 to
 * 0.195 reads directories and files up to the end of the header, wherever that is.
 */
bool lines_check_program(const uint8_t *section, size_t size, uint64_t offset);

/*
 * Returns the number of bytes of the abbreviations at this offset of .debug_abbrev, up to
 * their end or max. libdw may read all of them for each unit that refers to them.
 * Returns 0 if the offset is outside of the section.
 */
size_t lines_check_abbrevs(const uint8_t *section, size_t size, uint64_t offset, size_t max);

#endif
