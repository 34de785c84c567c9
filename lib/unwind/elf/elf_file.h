/*
 * An ELF file that a stranger wrote, opened by descriptor with libelf.
 *
 * libelf reads with pread (ELF_C_READ), never mmap: a file that shrinks must
 * not be a SIGBUS. It allocates what headers say before it looks at the file,
 * so headers are checked here before libelf sees them, and contents are read
 * here, with a limit.
 */
#ifndef LIB_UNWIND_ELF_ELF_FILE_H
#define LIB_UNWIND_ELF_ELF_FILE_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

/* Real files have up to about 20; Go and LLVM's propeller add a few. */
#define ELF_PHDRS_MAX 128
/* -ffunction-sections objects are not mapped; large programs have about 60. */
#define ELF_SECTIONS_MAX 4096
/* Names of so many sections. */
#define ELF_SHSTRTAB_MAX (1u << 20)

struct elf_file {
	int fd; /* the caller's */
	uint64_t size;
	Elf *elf;
	GElf_Ehdr ehdr;
	size_t n_phdrs;
	size_t shstrndx; /* 0: no section names */
};

/*
 * Opens the file behind fd, which stays the caller's and open until
 * elf_file_close. 64-bit little-endian executables and shared objects only.
 * Returns 0, -ENOEXEC if it is not one of those or not well-formed, -ENOMEM.
 */
must_check int elf_file_open(struct elf_file *f, int fd);
void elf_file_close(struct elf_file *f);

/*
 * The section of that name, with its header; NULL if there is none. ".debug_x"
 * finds ".zdebug_x", too.
 */
Elf_Scn *elf_file_section(const struct elf_file *f, const char *name, GElf_Shdr *ret);

/* The first program header of that type. */
bool elf_file_phdr(const struct elf_file *f, uint32_t type, GElf_Phdr *ret);

/*
 * size bytes at offset, in memory that the caller frees. Returns 0, -E2BIG
 * above max, -ENODATA if the file ends before, -ENOMEM, pread's error.
 */
must_check int elf_file_read(const struct elf_file *f, uint64_t offset, uint64_t size, size_t max,
			     uint8_t **ret);

/*
 * A section's contents, decompressed (SHF_COMPRESSED by zlib or zstd, .zdebug_
 * by zlib). Returns as elf_file_read, -ENODATA for a section without contents
 * in the file, too.
 */
must_check int elf_file_contents(const struct elf_file *f, Elf_Scn *scn, const GElf_Shdr *shdr,
				 size_t max, uint8_t **ret, size_t *ret_size);

/* Reads all of n bytes at offset. Returns 0, -ENODATA or pread's error. */
must_check int pread_all(int fd, void *bytes, size_t n, uint64_t offset);

#endif
