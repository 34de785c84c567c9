/*
 * Go's table of functions, .gopclntab: what its runtime unwinds by, and what
 * strip(1) and -ldflags=-s cannot take away. For programs without .debug_frame
 * and .symtab, as Debian has them, it gives the rows and the names.
 *
 * Versions of Go 1.16 and later. Source: runtime/symtab.go and
 * internal/abi/symtab.go (pcHeader, functab, _func), and "Go 1.2 Runtime Symbol
 * Information" by R. Cox for how pc-value tables are encoded.
 */
#ifndef LIB_UNWIND_ELF_GOPCLNTAB_H
#define LIB_UNWIND_ELF_GOPCLNTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/unwind/elf/elf_file.h"
#include "lib/unwind/rules/rows.h"

/* A large program's, such as Kubernetes', has 40 MB. */
#define GOPCLNTAB_MAX (128u << 20)

struct gopclntab {
	uint8_t *bytes;
	size_t size;
	uint64_t text; /* what entries are relative to, or 0 */
	size_t n;      /* functions */
	size_t names;  /* offsets in bytes: of all names, */
	size_t pcs;    /* of all pc-value tables, */
	size_t funcs;  /* of the table of functions */
	size_t word;   /* of that table's numbers */
	uint32_t quantum;
};

struct gopclntab_function {
	uint64_t start, end; /* vaddr */
	const char *name;    /* in the table's bytes, not terminated */
	size_t name_size;    /* 0: none */
	size_t sp;	     /* where its stack's heights are, in bytes */
};

/*
 * Finds and reads that of f. Returns 0, -ENODATA if it has none or one that is
 * not understood, -ENOMEM.
 */
must_check int gopclntab_open(const struct elf_file *f, struct gopclntab *ret);
void gopclntab_close(struct gopclntab *t);

/*
 * As gopclntab_open, of bytes that stay the caller's. text: counts where the
 * table says 0, as one that is to be relocated does. Returns 0 or -ENODATA.
 */
must_check int gopclntab_parse(uint8_t *bytes, size_t size, uint64_t text, struct gopclntab *ret);

/* The function of this number, below n. False if it is malformed. */
bool gopclntab_function(const struct gopclntab *t, size_t number, struct gopclntab_function *ret);

/*
 * The rows of all functions: CFA and return address by the stack pointer.
 * Functions that are malformed or not in ascending order are left out. base: as
 * for rows. Returns 0 or -ENOMEM.
 */
must_check int gopclntab_rows(const struct gopclntab *t, uint64_t base, struct rows *ret);

#endif
