/*
 * From an ELF file's call frame information to rows, by libdw: of a small file
 * all at once, of a large one (a browser, LLVM) the part that is asked for, so
 * that nobody waits for a second until 150 MB of code are compiled of which a
 * stack goes through twenty functions.
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

/*
 * Files with more functions are compiled in parts, as they are needed; below it
 * takes some 20 ms. Such a file's section stays in memory meanwhile.
 */
#define CFI_WHOLE_MAX 16384
/* Functions of a part: a millisecond or two. */
#define CFI_PART_FDES 512

/* The call frame information of a file; the file may be closed. */
struct cfi;

/*
 * Reads and checks it; addresses are relative to base, the p_vaddr of the
 * file's first segment. Where .eh_frame and .debug_frame speak of the same
 * address the first one counts. What is malformed is left out; of functions
 * that overlap cfi_entries.h says which one counts. Returns 0, perhaps without
 * a single row, or -ENOMEM.
 */
must_check int cfi_open(const struct elf_file *f, uint64_t base,
			struct cfi **ret);
/* The same with other limits than those above; part_fdes is at least 1. */
must_check int cfi_open_parts(const struct elf_file *f, uint64_t base,
			      size_t whole_max, size_t part_fdes,
			      struct cfi **ret);
void cfi_free(struct cfi *c); /* takes NULL */

/*
 * The rows for vaddr and what is around it, compiled now if they are not yet;
 * c's, never NULL. Without memory, and if c is NULL, there are none in it.
 */
const struct rows *cfi_rows(struct cfi *c, uint64_t vaddr);

/* The memory that it takes, about. */
size_t cfi_bytes(const struct cfi *c);

/* All of a file's CFI at once; as cfi_open. */
must_check int cfi_compile(const struct elf_file *f, uint64_t base,
			   struct rows *ret);

#endif
