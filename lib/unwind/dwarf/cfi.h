/*
 * Compiles the call frame information (CFI) of an ELF file with libdw. A row is an address range
 * with the rule that finds the caller's registers there (rules/rows.h).
 *
 * Rows are compiled in parts of CFI_PART_FDES functions, each part at the first look-up of an
 * address in it. A stack goes through some twenty functions of a file with 150 MB of code, and
 * compiling the whole file would take a second. cfi_source.h says what libdw reads. Addresses
 * (vaddr) are those of the ELF file. Not thread-safe.
 *
 * Source: DWARF 5, section 6.4; Linux Standard Base 5.0, 10.6 (.eh_frame, .eh_frame_hdr and pointer
 * encodings).
 */
#ifndef LIB_UNWIND_DWARF_CFI_H
#define LIB_UNWIND_DWARF_CFI_H

#include <stdint.h>

#include "lib/base/util.h"
#include "lib/unwind/elf/elf_file.h"
#include "lib/unwind/rules/rows.h"

/* The number of functions in one part. A part takes about 50 us to compile. */
#define CFI_PART_FDES 16

struct cfi;

/*
 * Reads .eh_frame and .debug_frame of f, which is not needed afterwards. base is the p_vaddr of the
 * file's first segment; it becomes the base of the rows (struct rows). If functions overlap, an
 * address belongs to the function with the highest start that is not above the address.
 * .debug_frame is used where .eh_frame has no rule. Malformed entries are left out. A file without
 * CFI is no error: *ret has no rows. Returns 0 or -ENOMEM. The caller calls cfi_free().
 */
must_check int cfi_open(const struct elf_file *f, uint64_t base, struct cfi **ret);
/* As cfi_open(), with parts of part_fdes functions (at least 1). */
must_check int cfi_open_parts(const struct elf_file *f, uint64_t base, size_t part_fdes,
			      struct cfi **ret);
void cfi_free(struct cfi *c); /* c may be NULL */

/*
 * Returns the rows of the part that has the last function starting at or below vaddr; rows_find()
 * shows whether they cover vaddr. Compiles the part at its first use. Never returns NULL. c owns
 * the rows; they are valid until cfi_free(). They are empty if there is no such function, c is
 * NULL, or memory cannot be allocated. The work on a file is limited to a few seconds; a function
 * beyond the limit has no rows.
 */
const struct rows *cfi_rows(struct cfi *c, uint64_t vaddr);

/*
 * Returns the first address above vaddr at which a function with CFI begins; UINT64_MAX if there is
 * none or c is NULL. Compiles nothing.
 */
uint64_t cfi_next_start(const struct cfi *c, uint64_t vaddr);

/* Returns the memory in use, in bytes. */
size_t cfi_bytes(const struct cfi *c);

#endif
