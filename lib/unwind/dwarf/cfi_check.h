/*
 * Looks through a program of call frame information without executing it: may
 * libdw be given it?
 */
#ifndef LIB_UNWIND_DWARF_CFI_CHECK_H
#define LIB_UNWIND_DWARF_CFI_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * True if its instructions are known and complete, and its registers' numbers
 * and nesting bounded (libdw allocates by both). *ret_rows: how many rows it
 * makes at most.
 */
bool cfi_check_program(const uint8_t *p, const uint8_t *end, uint64_t *ret_rows);

#endif
