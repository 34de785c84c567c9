/*
 * The names of an image's functions, from its symbol tables.
 *
 * Functions (STT_FUNC, STT_GNU_IFUNC) and, where no function reaches, untyped
 * symbols in executable segments. Of several names for one address one is
 * chosen, always the same: sized before unsized, global before weak before
 * local, then the shortest, then the first by bytes.
 */
#ifndef LIB_UNWIND_ELF_SYMBOLS_H
#define LIB_UNWIND_ELF_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/unwind/elf/elf_file.h"

/* A browser with all its symbols: 1.5 million of them, 100 MB of names. */
#define SYMBOLS_MAX	    (1u << 21)
#define SYMBOLS_SECTION_MAX (128u << 20)
/* C++ and Rust names reach some kilobytes; what is longer is cut off. */
#define SYMBOLS_NAME_MAX 4096

struct symbol {
	uint32_t start; /* relative to base */
	uint32_t size;	/* 0: not known */
	uint32_t name;	/* offset in names */
	uint32_t rank;	/* among those of the same start */
};

struct symbols {
	struct symbol *v; /* by start, one for each start */
	size_t n;
	char *names; /* as the file's tables have them */
	uint64_t base;
	size_t bytes; /* of memory */
};

void symbols_init(struct symbols *s);
void symbols_fini(struct symbols *s);

/*
 * Reads .symtab and .dynsym of f, and where f has no .symtab and debug is not
 * NULL, that of debug; where there is none, Go's own table. base is the p_vaddr
 * of f's first segment. Returns 0 with what there is, or -ENOMEM.
 */
must_check int symbols_load(const struct elf_file *f, const struct elf_file *debug, uint64_t base,
			    struct symbols *ret);

/* True if f has a .symtab with contents. */
bool symbols_has_symtab(const struct elf_file *f);

/*
 * Where the function of this name is, which may have ".abi0" behind it. False
 * if there is none, or none with a size. Looks at all of them.
 */
bool symbols_range(const struct symbols *s, const char *name, uint64_t *ret_start,
		   uint64_t *ret_end);

/*
 * The symbol that covers vaddr; the name is owned by s. False if there is
 * none.
 */
bool symbols_find(const struct symbols *s, uint64_t vaddr, const char **ret_name,
		  uint64_t *ret_offset);

#endif
