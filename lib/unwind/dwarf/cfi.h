/*
 * From an ELF file's call frame information to rows, by libdw: of the part that
 * is asked for, so that nobody waits for a second until 150 MB of code are
 * compiled of which a stack goes through twenty functions. cfi_source.h says
 * what libdw sees.
 *
 * Source: DWARF 5, section 6.4; Linux Standard Base 5.0, 10.6 (.eh_frame,
 * .eh_frame_hdr and pointer encodings).
 */
#ifndef LIB_UNWIND_DWARF_CFI_H
#define LIB_UNWIND_DWARF_CFI_H

#include <stdint.h>

#include "lib/base/util.h"
#include "lib/unwind/elf/elf_file.h"
#include "lib/unwind/rules/rows.h"

/* Functions of a part: some 50 us. */
#define CFI_PART_FDES 16

/* The call frame information of a file; the file may be closed. */
struct cfi;

/*
 * Reads it; addresses are relative to base, the p_vaddr of the file's first
 * segment. Of a section that function counts for an address which starts last
 * at it or before. Where .eh_frame has no rule for an address .debug_frame
 * counts. What is malformed is left out. Returns 0, perhaps without a single
 * row, or -ENOMEM.
 */
must_check int cfi_open(const struct elf_file *f, uint64_t base, struct cfi **ret);
/* The same in parts of part_fdes functions, at least 1. */
must_check int cfi_open_parts(const struct elf_file *f, uint64_t base, size_t part_fdes,
			      struct cfi **ret);
void cfi_free(struct cfi *c); /* takes NULL */

/*
 * The rows for vaddr and what is around it, compiled now if they are not yet;
 * c's, never NULL. Without memory, and if c is NULL, there are none in it.
 */
const struct rows *cfi_rows(struct cfi *c, uint64_t vaddr);

/* The memory that it takes. */
size_t cfi_bytes(const struct cfi *c);

#endif
