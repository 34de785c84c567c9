/*
 * What libdw trusts and must not: the sizes that DWARF's tables say they have.
 * Checked here before it reads them. Source: DWARF 5, 6.2.4 and 7.5.3.
 */
#ifndef LIB_UNWIND_DWARF_LINES_CHECK_H
#define LIB_UNWIND_DWARF_LINES_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A unit's line table: each byte can become a row of 100 bytes while it is
 * decoded. Units have some hundred kilobytes.
 */
#define LINES_PROGRAM_MAX (2u << 20)

/* May libdw decode the line table at offset of .debug_line? */
bool lines_check_program(const uint8_t *section, size_t size, uint64_t offset);

/*
 * The bytes of the abbreviations at offset of .debug_abbrev, up to their end
 * or max; libdw may read all of them for each unit that names them. 0: the
 * offset is wrong.
 */
size_t lines_check_abbrevs(const uint8_t *section, size_t size, uint64_t offset, size_t max);

#endif
