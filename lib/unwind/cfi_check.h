/*
 * Reads CFI entries and their programs without executing them: where a
 * function's entry says that the function is, and whether libdw may be given
 * its program.
 */
#ifndef LIB_UNWIND_CFI_CHECK_H
#define LIB_UNWIND_CFI_CHECK_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A section's bytes and the address that they are mapped at. */
struct cfi_section {
	uint8_t *bytes;
	size_t size;
	uint64_t vaddr;
	bool is_eh; /* .eh_frame, not .debug_frame */
};

/* What an FDE's reader has to know of its CIE. */
struct cfi_cie {
	uint8_t pointer_encoding; /* DW_EH_PE_* of FDE addresses */
	bool sized;		  /* 'z': augmentation data has a length */
};

/* A function's entry. */
struct cfi_fde {
	uint64_t start;
	uint64_t end;
	size_t range_at; /* offset of its size in the section */
	size_t range_size;
	size_t program; /* offset in the section */
	size_t program_size;
};

/*
 * Reads a CIE's augmentation and checks its initial program. False if it is
 * malformed, or libdw would read it otherwise.
 */
bool cfi_check_cie(const struct cfi_section *s, const Dwarf_CIE *cie,
		   struct cfi_cie *ret);

/* Decodes an FDE. False if it is malformed or covers nothing. */
bool cfi_read_fde(const struct cfi_section *s, const Dwarf_FDE *fde,
		  const struct cfi_cie *cie, struct cfi_fde *ret);

/*
 * Checks a program: instructions known and complete, registers and nesting
 * bounded (libdw allocates by both). *ret_rows is how many rows it makes at
 * most.
 */
bool cfi_check_program(const uint8_t *p, size_t size, uint64_t *ret_rows);

/*
 * Reads a pointer at offset *pos of the section in a DW_EH_PE_* encoding that
 * is of fixed size, and by itself or relative to its place.
 */
bool cfi_read_pointer(const struct cfi_section *s, uint8_t encoding, size_t end,
		      size_t *pos, uint64_t *ret);

#endif
