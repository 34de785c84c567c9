/*
 * The function names of an image (an ELF file), from its symbol tables. Names are mangled, as the
 * tables have them, but without a version: "memcpy" for "memcpy@@GLIBC_2.14". Addresses (vaddr) are
 * those of the ELF file.
 *
 * Symbols are functions (STT_FUNC, STT_GNU_IFUNC) in executable segments, and untyped symbols there
 * that do not lie in a function with a size. If several symbols have the same address, the first of
 * these rules that decides chooses one: a function before an untyped symbol; a symbol with a size
 * before one without; global before weak before local; the shortest name; the first name in byte
 * order.
 *
 * A symbol without a size, as assembly functions have, ends at the next symbol, at the end of its
 * section, or after SYMBOLS_NO_SIZE_MAX bytes, whichever comes first. If it is a function that lies
 * in another one with a size, it ends at that function's end at the latest. With symbols_bound()
 * the caller, who knows where other functions start (by CFI), lowers these ends.
 */
#ifndef LIB_UNWIND_ELF_SYMBOLS_H
#define LIB_UNWIND_ELF_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/unwind/elf/elf_file.h"

/*
 * The most symbols of an image, and the most bytes of a symbol table or a string table. Further
 * symbols are left out; a larger table counts as missing. A browser with all symbols has 1.5
 * million, with 100 MB of names.
 */
#define SYMBOLS_MAX	    (1u << 21)
#define SYMBOLS_SECTION_MAX (128u << 20)
/* In bytes. Longer names are cut; C++ and Rust names reach some kilobytes. */
#define SYMBOLS_NAME_MAX 4096

/*
 * In bytes: how far a symbol without a size reaches. Few hand-written functions are longer, and
 * those of OpenSSL, of up to 30 KB, have a size. Without a limit, a label of a stripped libx264
 * would name the 225 KB behind it: functions with neither symbols nor CFI.
 */
#define SYMBOLS_NO_SIZE_MAX (16u * 1024)

struct symbol {
	uint32_t start;	  /* vaddr - symbols.base */
	uint32_t size;	  /* at least 1 */
	uint32_t name;	  /* offset in names */
	uint16_t rank;	  /* for the choice among symbols of the same start */
	uint16_t no_size; /* 1: the table gives no size; size is an upper bound */
};

struct symbols {
	struct symbol *v; /* sorted by start; one for each start */
	size_t n;
	char *names;   /* mangled, each NUL-terminated */
	uint64_t base; /* p_vaddr of the file's first segment */
	size_t bytes;  /* the size of v and names in memory */
};

void symbols_init(struct symbols *s);
void symbols_fini(struct symbols *s);

/*
 * Reads .symtab and .dynsym of f. If f has no .symtab, reads that of its debug file (debug, which
 * may be NULL) or else Go's table of functions (gopclntab.h). base is the p_vaddr of f's first
 * segment. Malformed tables count as missing. Needs no symbols_init() before. Returns 0, or -ENOMEM
 * with *ret empty. The caller calls symbols_fini().
 */
must_check int symbols_load(const struct elf_file *f, const struct elf_file *debug, uint64_t base,
			    struct symbols *ret);

/* Returns true if f has a .symtab with contents. */
bool symbols_has_symtab(const struct elf_file *f);

/*
 * Lowers the size of the symbols whose size the table does not give (no_size). Calls next() once
 * for each, with the symbol's start as vaddr. next() returns the first address above vaddr at which
 * a function starts, or UINT64_MAX.
 */
void symbols_bound(struct symbols *s, uint64_t (*next)(const void *ctx, uint64_t vaddr),
		   const void *ctx);

/*
 * Finds a function whose name is name, or name with the suffix ".abi0" (Go), and sets the vaddr of
 * its start and its end (exclusive). Returns false if there is none, or its size is unknown. Slow:
 * compares name with the name of every symbol.
 */
bool symbols_range(const struct symbols *s, const char *name, uint64_t *ret_start,
		   uint64_t *ret_end);

/*
 * Finds the symbol that covers vaddr; of several, the one that starts last. s owns *ret_name, which
 * is valid until symbols_fini(); *ret_offset is the distance in bytes from the symbol's start to
 * vaddr. Returns false if none of the last 8 symbols that start at or before vaddr covers it.
 */
bool symbols_find(const struct symbols *s, uint64_t vaddr, const char **ret_name,
		  uint64_t *ret_offset);

#endif
