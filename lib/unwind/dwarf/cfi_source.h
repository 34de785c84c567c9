/*
 * One section of call frame information (.eh_frame or .debug_frame): a sorted list of its
 * functions, and each function as a small ELF file that libdw can read. Used by cfi.c. The entry of
 * a function is its FDE; the CIE that the FDE refers to has what several functions share.
 *
 * libdw 0.188 is slow and unreliable at finding a function in a whole section:
 * - It uses the search table in .eh_frame_hdr only if the section header of
 *   .eh_frame_hdr is before that of .eh_frame. lld and gold write them the other
 *   way round, and .debug_frame has no table.
 * - Without a table it reads all entries up to the one that is needed into a
 *   tree. libLLVM-14 has 95,000. libdw stops at the first invalid entry.
 * - If functions overlap, libdw returns the one that an earlier lookup has found.
 *
 * So this module lists functions by the linker's table (.eh_frame_hdr). libdw gets
 * a file made in memory with the FDE of one function and its CIE, at their real
 * addresses. This module checks the FDE and the CIE first.
 */
#ifndef LIB_UNWIND_DWARF_CFI_SOURCE_H
#define LIB_UNWIND_DWARF_CFI_SOURCE_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/unwind/elf/elf_file.h"
#include "lib/unwind/elf/made_elf.h"

/* The largest section that is read, in bytes. libLLVM-14 has 5 MB, a browser 30 MB. */
#define CFI_SECTION_MAX (128u << 20)

/* The most entries (FDEs) of a section. A browser has about 500,000. */
#define CFI_FDES_MAX (1u << 20)

/* A function: its first address, and the offset of its entry in the section. */
struct cfi_entry {
	uint64_t start;
	uint64_t at;
};

struct cfi_source {
	uint8_t *bytes; /* the section */
	size_t size;
	uint64_t vaddr;		   /* of the section */
	bool is_eh;		   /* .eh_frame; false: .debug_frame */
	struct cfi_entry *entries; /* sorted by start, which is unique */
	size_t n;
};

/*
 * Reads .eh_frame (is_eh) or .debug_frame of f and lists its functions: from the linker's table
 * or, if there is none in the usual form, from all entries. In the second case, entries that are
 * malformed, or behind one whose length is malformed, are left out; if entries have the same start,
 * the first in the section is kept. A section that is missing, unreadable or larger than
 * CFI_SECTION_MAX has no entries. Returns 0 or -ENOMEM; the caller closes s in both cases. f is not
 * needed afterwards.
 */
must_check int cfi_source_open(struct cfi_source *s, const struct elf_file *f, bool is_eh);
void cfi_source_close(struct cfi_source *s);

/* One function, as a file for libdw. */
struct cfi_function {
	struct made_elf elf;
	Dwarf_CFI *cfi; /* for dwarf_cfi_addrframe() */
};

/*
 * Checks the entry s->entries[n] and its CIE, and makes the file for libdw. If the entry's FDE
 * covers no address, takes the FDE behind it in the section's bytes instead: compilers write an
 * empty FDE for a function without an instruction, and lld's table then lacks the function that
 * follows at the same address. The check limits lengths, register numbers and nesting, and finds
 * incomplete instructions. It does not find all faults: libdw runs in the sandbox of this process.
 *
 * *work limits the cost of libdw: how many bytes of CFA programs (the instructions in an FDE; those
 * of a CIE do not count) it may still execute. libdw executes a function's program from its start
 * for each row, so a function costs ROWS * (BYTES of its program + a constant).
 * DW_CFA_remember_state, for which libdw allocates memory, counts as 65 bytes. If the check
 * succeeds and *work suffices, cfi_function_open() subtracts the cost from *work.
 *
 * s may be closed before c. Returns 0; -ENODATA if the check fails, *work is too small, or libdw
 * refuses the entry; or -ENOMEM. After an error c needs no close.
 */
must_check int cfi_function_open(struct cfi_function *c, const struct cfi_source *s, size_t n,
				 uint64_t *work);
void cfi_function_close(struct cfi_function *c);

#endif
