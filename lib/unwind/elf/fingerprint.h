/*
 * The fingerprint of an ELF file: hashes of bytes that are the same in the file and in memory, and
 * that differ from those of other files. If one file can replace another at the same addresses, the
 * fingerprints show which of them is mapped: capture compares the bytes in memory
 * (lib/base/watch_part.h).
 *
 * The fingerprint is the build-id. For a file without a build-id in a read-only segment, it is
 * parts of .gnu.hash, .dynstr and .text. They differ between two builds of one library: a new name
 * changes .gnu.hash and .dynstr, and any change of the code moves bytes of .text.
 */
#ifndef LIB_UNWIND_ELF_FINGERPRINT_H
#define LIB_UNWIND_ELF_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

#include "lib/unwind/elf/build_id.h"
#include "lib/unwind/elf/elf_file.h"

struct fingerprint_part {
	uint64_t vaddr;
	uint32_t size; /* 1 to WATCH_BYTES (lib/base/watch_part.h) */
	uint64_t hash; /* watch_part_hash() */
};

#define FINGERPRINT_PARTS 8

struct fingerprint {
	size_t n; /* 0: the file has none */
	struct fingerprint_part parts[FINGERPRINT_PARTS];
};

/* Makes the fingerprint of f; id is what build_id_read() has read of f. */
void fingerprint_read(const struct elf_file *f, const struct build_id *id, struct fingerprint *ret);

#endif
