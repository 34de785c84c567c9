/*
 * A section of call frame information: which functions it has, and one function
 * of it as libdw can be asked.
 *
 * libdw 0.188 is no help in finding a function. It uses the search table of
 * .eh_frame_hdr only if that section's header stands before that of .eh_frame;
 * lld and gold write them the other way round, and a .debug_frame has none.
 * Without a table it reads entry after entry into a tree, up to the one that it
 * is asked for (of libLLVM-14, 95,000), and the first that it cannot read ends
 * that. And of functions that overlap it finds the one that it was asked for
 * before. So the linker's table is searched here, and libdw gets a file made in
 * memory that has one function's entry and the CIE of that, at the addresses
 * where they are.
 */
#ifndef LIB_UNWIND_DWARF_CFI_SOURCE_H
#define LIB_UNWIND_DWARF_CFI_SOURCE_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/unwind/elf/elf_file.h"
#include "lib/unwind/elf/made_elf.h"

/* libLLVM-14's is 5 MB, a browser's 30 MB. */
#define CFI_SECTION_MAX (128u << 20)

/* A browser has about 500,000. */
#define CFI_FDES_MAX (1u << 20)

/* A function: where it starts, and its entry's offset in the section. */
struct cfi_entry {
	uint64_t start;
	uint64_t at;
};

struct cfi_source {
	uint8_t *bytes; /* of the section */
	size_t size;
	uint64_t vaddr;
	bool is_eh;		   /* .eh_frame, not .debug_frame */
	struct cfi_entry *entries; /* by start, each of which is there once */
	size_t n;
};

/*
 * Reads .eh_frame or .debug_frame, and which functions it has: from the
 * linker's table or, where there is none of the usual form, from the entries,
 * of which the first counts where some start together. Returns 0, also if there
 * is no such section or it is malformed, or -ENOMEM.
 */
must_check int cfi_source_open(struct cfi_source *s, const struct elf_file *f, bool is_eh);
void cfi_source_close(struct cfi_source *s);

/* One function for libdw. */
struct cfi_function {
	struct made_elf elf;
	Dwarf_CFI *cfi;
};

/*
 * Makes what libdw is asked for entry number n, after a check of the entry and its CIE.
 * What the check does not cover is left to libdw, in this process's sandbox. The work
 * that the function's rows will cost libdw is subtracted from *work. Returns 0, -ENODATA
 * if the entry fails the check or libdw refuses it, or -ENOMEM.
 */
must_check int cfi_function_open(struct cfi_function *c, const struct cfi_source *s, size_t n,
				 uint64_t *work);
void cfi_function_close(struct cfi_function *c);

#endif
