/*
 * A section of call frame information as a file of its own, made in memory,
 * for libdw to read (cfi.h says why).
 */
#ifndef LIB_UNWIND_CFI_SOURCE_H
#define LIB_UNWIND_CFI_SOURCE_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/unwind/cfi_check.h"
#include "lib/unwind/elf_file.h"

struct cfi_source {
	/* Its bytes lie in file: what is changed there, libdw sees changed. */
	struct cfi_section section;
	uint8_t *file; /* starts with an ELF header */
	Elf *elf;      /* NULL: there is no such section */
	Dwarf *dwarf;
	Dwarf_CFI *cfi; /* NULL before open, or if libdw refuses it */
};

/*
 * Reads .eh_frame or .debug_frame of f into a zeroed s. Returns 0, also if
 * there is none or it can't be read, or -ENOMEM.
 */
must_check int cfi_source_load(struct cfi_source *s, const struct elf_file *f,
			       bool is_eh);

/* Hands the section to libdw. Before, its contents have been checked. */
void cfi_source_open(struct cfi_source *s);

void cfi_source_close(struct cfi_source *s);

#endif
