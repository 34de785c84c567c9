/*
 * Reads an ELF file by its descriptor, with libelf: program headers, sections,
 * contents. Used for all that is read of a target's files. Offsets are bytes in
 * the file.
 *
 * The file is not trusted. libelf reads it with pread(2) (ELF_C_READ), never
 * with mmap(2), because a file that shrinks while it is mapped raises SIGBUS.
 * libelf allocates as much memory as headers request, however small the file is.
 * So this module checks headers before libelf reads them, and limits all contents.
 */
#ifndef LIB_UNWIND_ELF_ELF_FILE_H
#define LIB_UNWIND_ELF_ELF_FILE_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

/* Files with more program headers are refused. Known files have up to about 20. */
#define ELF_PHDRS_MAX 128
/* Files with more sections are refused. Large programs have about 60. */
#define ELF_SECTIONS_MAX 4096
/* Bytes of the names of sections. A file with more counts as one without section names. */
#define ELF_SHSTRTAB_MAX (1u << 20)

struct elf_file {
	int fd; /* owned by the caller */
	uint64_t size;
	Elf *elf;
	GElf_Ehdr ehdr;
	size_t n_phdrs;
	size_t shstrndx; /* 0: no section names */
};

/*
 * Opens the file behind fd: a 64-bit little-endian executable or shared object. The
 * caller keeps fd open until elf_file_close() and closes it afterwards. Returns 0, or
 * -ENOEXEC: the file is something else, malformed or unreadable, or memory is short.
 * After an error f needs no close.
 */
must_check int elf_file_open(struct elf_file *f, int fd);
void elf_file_close(struct elf_file *f);

/*
 * Finds a section by name and reads its header into *ret. The name ".debug_x" also
 * finds ".zdebug_x". Returns NULL if there is no such section. The result is valid
 * until elf_file_close().
 */
Elf_Scn *elf_file_section(const struct elf_file *f, const char *name, GElf_Shdr *ret);

/* Finds the first section of this type (SHT_DYNSYM). Returns NULL if there is none. */
Elf_Scn *elf_file_section_of_type(const struct elf_file *f, uint32_t type, GElf_Shdr *ret);

/* Finds the first program header of this type. Returns false if there is none. */
bool elf_file_phdr(const struct elf_file *f, uint32_t type, GElf_Phdr *ret);

/*
 * Reads size bytes at offset into memory that the caller frees. Returns 0, -E2BIG if size is above
 * max, -ENODATA if size is 0 or the file ends before, -ENOMEM, or the error of pread(2).
 */
must_check int elf_file_read(const struct elf_file *f, uint64_t offset, uint64_t size, size_t max,
			     uint8_t **ret);

/*
 * Reads the contents of a section that elf_file_section() or elf_file_section_of_type() has found,
 * and decompresses them (SHF_COMPRESSED by zlib or zstd, .zdebug_ by zlib). The caller frees *ret.
 * Returns 0, or an error of elf_file_read(): -E2BIG also if the decompressed contents are above
 * max, -ENODATA also if the section has no contents in the file or they are malformed.
 */
must_check int elf_file_contents(const struct elf_file *f, Elf_Scn *scn, const GElf_Shdr *shdr,
				 size_t max, uint8_t **ret, size_t *ret_size);

/*
 * Reads exactly n bytes at offset of any file; the offset of fd does not change.
 * Returns 0, -ENODATA if the file ends before, or the error of pread(2).
 */
must_check int elf_file_pread(int fd, void *bytes, size_t n, uint64_t offset);

#endif
