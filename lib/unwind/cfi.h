/*
 * From an ELF file's call frame information to rows, by libdw.
 *
 * libdw executes the CFI; it never sees the file. It would read more of it
 * than is needed (the whole file, or all of its debug sections), look for
 * other files beside it, and trust the search table of .eh_frame_hdr. So it
 * gets a file made in memory that has one section: the .eh_frame or the
 * .debug_frame, whose programs have been checked before.
 *
 * Source: DWARF 5, section 6.4; Linux Standard Base 5.0, 10.6 (.eh_frame,
 * .eh_frame_hdr and pointer encodings).
 */
#ifndef LIB_UNWIND_CFI_H
#define LIB_UNWIND_CFI_H

#include <stdint.h>

#include "lib/base/util.h"
#include "lib/unwind/elf_file.h"
#include "lib/unwind/rows.h"

/* libLLVM-14's is 5 MB, a browser's 30 MB. */
#define CFI_SECTION_MAX (128u << 20)
/* A browser has about 500,000. */
#define CFI_FDES_MAX (1u << 20)

/*
 * Compiles all CFI of a file; addresses are relative to base, the p_vaddr of
 * its first segment. Where .eh_frame and .debug_frame speak of the same
 * address the first one counts. What is malformed is left out. Returns 0 with
 * the rows (perhaps none), or -ENOMEM.
 */
must_check int cfi_compile(const struct elf_file *f, uint64_t base,
			   struct rows *ret);

#endif
