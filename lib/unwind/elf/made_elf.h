/*
 * An ELF file made in memory from a few sections. libdw gets such a file instead
 * of the target's, so that it reads only sections that have been checked, and
 * opens no other file.
 */
#ifndef LIB_UNWIND_ELF_MADE_ELF_H
#define LIB_UNWIND_ELF_MADE_ELF_H

#include <libelf.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

struct made_section {
	const char *name;
	size_t size;	/* 0: the section is left out */
	uint64_t addr;	/* the section's address, sh_addr */
	uint8_t *bytes; /* made_elf_open() sets it: the contents, zeroed; not set if size is 0 */
};

struct made_elf {
	uint8_t *file; /* the file's bytes */
	size_t size;
	Elf *elf; /* for libelf and libdw */
};

/*
 * Makes a file of n sections; the caller sets name, size and addr of each. The names
 * are copied. The caller then writes the contents to sections[i].bytes, which m owns
 * until made_elf_close(). Returns 0, or -ENOMEM: then there is nothing to close.
 */
must_check int made_elf_open(struct made_elf *m, struct made_section *sections, size_t n);
/* Safe on a zeroed struct. */
void made_elf_close(struct made_elf *m);

#endif
