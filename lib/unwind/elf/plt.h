/*
 * Finds the names of PLT stubs. A call of a function in another file goes to a stub in the
 * procedure linkage table (PLT), which jumps through a slot of the global offset table (GOT). The
 * relocation of that slot names the function, so the stub of malloc is called "malloc@plt". This
 * module is needed because linkers other than mold write no symbols for stubs.
 *
 * plt_find() finds the sections when the image is made; plt_load() reads the names when an
 * address in one of them is looked up for the first time. These have no names:
 * - all stubs of files without section headers;
 * - stubs of retpolines;
 * - the code through which the first call of a function enters the dynamic linker (the first entry
 *   of the PLT; with IBT all entries of .plt).
 *
 * The file is not trusted: a malformed table names nothing.
 *
 * Source: System V psABI for AMD64, 5.2 and 13.1 (IBT); ELF for the Arm 64-bit
 * Architecture; the output of GNU ld, gold, lld and mold.
 */
#ifndef LIB_UNWIND_ELF_PLT_H
#define LIB_UNWIND_ELF_PLT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/unwind/elf/elf_file.h"
#include "lib/unwind/elf/symbols.h"

/* .plt, .plt.sec, .plt.got, .plt.bnd, .iplt: linkers write each at most once. */
#define PLT_SECTIONS 5

/*
 * The largest table that is read, in bytes; a larger one names nothing. The .rela.dyn of libLLVM-14
 * has 9 MB, that of Chromium 26 MB.
 */
#define PLT_TABLE_MAX (64u << 20)
/* The most slots of an image that are read. libLLVM-14 has 3,786 that name a function. */
#define PLT_SLOTS_MAX (1u << 18)
/* Bytes of the names of an image's stubs. Stubs whose names exceed this have no name. */
#define PLT_NAMES_MAX (16u << 20)

struct plt_stub {
	uint64_t start; /* vaddr */
	uint32_t size;
	uint32_t name; /* offset in names */
};

/* Zeroed, it has no sections. */
struct plt {
	struct {
		uint64_t start, end; /* vaddr */
	} sections[PLT_SECTIONS];
	size_t n_sections;
	bool is_loaded;
	struct plt_stub *stubs; /* sorted by start */
	size_t n;
	char *names;  /* mangled, each with "@plt" and NUL */
	size_t bytes; /* the size of stubs and names in memory */
};

/* Finds the PLT sections of f. p must be zeroed. Allocates nothing. */
void plt_find(struct plt *p, const struct elf_file *f);
/* Returns true if vaddr is in one of the sections. */
bool plt_covers(const struct plt *p, uint64_t vaddr);

/*
 * Reads the names from f, the file of plt_find(), unless p->is_loaded. symbols are those of f: they
 * name functions of f itself that are chosen at run time (STT_GNU_IFUNC). Unreadable tables name
 * nothing. Returns 0, or -ENOMEM: then p is unchanged. The caller frees the names by plt_drop().
 */
must_check int plt_load(struct plt *p, const struct elf_file *f, const struct symbols *symbols);
/* Frees the names, and keeps the sections: plt_load() can be called again. */
void plt_drop(struct plt *p);

/*
 * Finds the stub that covers vaddr. p owns *ret_name, which is valid until plt_drop(); *ret_offset
 * is the distance in bytes from the stub's start to vaddr. Returns false if no stub covers vaddr,
 * or the stub has no name.
 */
bool plt_name(const struct plt *p, uint64_t vaddr, const char **ret_name, uint64_t *ret_offset);

#endif
