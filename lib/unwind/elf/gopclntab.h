/*
 * Go's table of functions (.gopclntab), which Go's runtime uses to unwind, and
 * which strip(1) and -ldflags=-s do not remove. It gives names for programs without
 * .symtab, such as those that Debian ships. On x86-64 it also gives unwind rules for
 * programs without .debug_frame.
 *
 * Supports the tables of Go 1.16 to 1.26. GNU ld and lld put the table
 * of a PIE or shared library that they link (cgo, -linkmode=external) into
 * .data.rel.ro, where it is found by its header.
 * From Go 1.26 on the table lacks the address of the code, which then is read from
 * the runtime's description of the module (.go.module).
 *
 * The bytes are not trusted: every offset is checked.
 *
 * Source: runtime/symtab.go and internal/abi/symtab.go (pcHeader, functab,
 * _func); "Go 1.2 Runtime Symbol Information" by R. Cox for the encoding of
 * pc-value tables.
 */
#ifndef LIB_UNWIND_ELF_GOPCLNTAB_H
#define LIB_UNWIND_ELF_GOPCLNTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/unwind/cpu.h"
#include "lib/unwind/elf/elf_file.h"
#include "lib/unwind/rules/rows.h"

/* In bytes. A larger table is ignored. A large program, such as Kubernetes, has 40 MB. */
#define GOPCLNTAB_MAX (128u << 20)

/*
 * False on aarch64: do not call gopclntab_rows(). Its rules say that the return address is on the
 * stack, but on aarch64 a call leaves the return address in the link register.
 */
#define GOPCLNTAB_HAS_ROWS (!CPU_LINK_REGISTER)

struct gopclntab {
	uint8_t *bytes; /* the table */
	size_t size;
	uint64_t text; /* the vaddr from which functions' starts count; 0 before Go 1.18 */
	size_t n;      /* number of functions */
	/* Offsets in bytes[]: */
	size_t names;	  /* of the names */
	size_t pcs;	  /* of the pc-value tables: values, such as stack heights, by pc */
	size_t funcs;	  /* of the table of functions */
	size_t word;	  /* bytes of a number in the table of functions */
	uint32_t quantum; /* the unit of distances in pc-value tables, in bytes */
};

struct gopclntab_function {
	uint64_t start, end; /* vaddr */
	const char *name;    /* in the table's bytes; has name_size bytes, without a NUL */
	size_t name_size;    /* 0: no name; longer names than 4096 bytes are cut */
	size_t sp;	     /* offset of the pc-value table of its stack heights; 0: none */
};

/*
 * Finds and reads the table of f, which is not needed afterwards. The caller calls
 * gopclntab_close(). Returns 0 or -ENOMEM; -ENODATA if f has no table, a malformed one, one of an
 * unknown version, or one for which the address of the code is not found.
 */
must_check int gopclntab_open(const struct elf_file *f, struct gopclntab *ret);
void gopclntab_close(struct gopclntab *t);

/*
 * Reads a table from bytes, which ret->bytes then points to. The caller owns bytes, keeps them as
 * long as it uses *ret, and does not call gopclntab_close(). text is the vaddr of the code; 0: not
 * known. Tables from Go 1.18 on need text if they have 0 in the place of that address, as in a file
 * that the dynamic linker relocates. Returns 0, or -ENODATA if the table is malformed, or if it
 * needs text and text is 0.
 */
must_check int gopclntab_parse(uint8_t *bytes, size_t size, uint64_t text, struct gopclntab *ret);

/* Reads the function of this number, which is below t->n. Returns false if it is malformed. */
bool gopclntab_function(const struct gopclntab *t, size_t number, struct gopclntab_function *ret);

/*
 * Makes the rows of all functions (address ranges with their unwind rules, rules/rows.h): CFA and
 * return address by the stack pointer. Leaves out functions that are malformed or not in ascending
 * order. base is the p_vaddr of the file's first segment, and becomes ret->base. The caller frees
 * *ret with rows_fini(). Returns 0 or -ENOMEM.
 */
must_check int gopclntab_rows(const struct gopclntab *t, uint64_t base, struct rows *ret);

#endif
