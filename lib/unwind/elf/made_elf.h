/*
 * An ELF file made in memory, of some sections, for libdw to read: it sees
 * these and no other file's.
 */
#ifndef LIB_UNWIND_ELF_MADE_ELF_H
#define LIB_UNWIND_ELF_MADE_ELF_H

#include <libelf.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

struct made_section {
	const char *name;
	size_t size;	/* 0: the file does not have this section */
	uint64_t addr;	/* where a process has it */
	uint8_t *bytes; /* given by made_elf_open: in the file, zeroed */
};

struct made_elf {
	uint8_t *file;
	size_t size;
	Elf *elf;
};

/*
 * Makes a file of n sections, whose contents the caller then writes. Returns 0
 * or -ENOMEM. A zeroed one may be closed, too.
 */
must_check int made_elf_open(struct made_elf *m, struct made_section *sections, size_t n);
void made_elf_close(struct made_elf *m);

#endif
