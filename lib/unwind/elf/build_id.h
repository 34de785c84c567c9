/*
 * Reads the identifier of an ELF file: its build-id, a note of the linker. For a file without a
 * build-id, makes an identifier of 16 bytes from the first 4096 bytes of .text, as Sentry's server
 * does (docs/FORMATS.md, debug_id).
 */
#ifndef LIB_UNWIND_ELF_BUILD_ID_H
#define LIB_UNWIND_ELF_BUILD_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/unwind/elf/elf_file.h"

/* In bytes. The usual size is 20 (SHA-1). ld --build-id=0x... accepts any size. */
#define BUILD_ID_MAX 64
/* In hexadecimal digits, NUL included. */
#define BUILD_ID_HEX_SIZE (2 * BUILD_ID_MAX + 1)

struct build_id {
	uint8_t bytes[BUILD_ID_MAX];
	size_t size;	 /* 0: the file has neither a build-id nor .text */
	bool is_real;	 /* a build-id; false: made from .text */
	uint64_t offset; /* of the build-id in the file, in bytes; 0 if made from .text */
};

/*
 * Reads the identifier of f. A build-id of more than BUILD_ID_MAX bytes is cut. If f has neither a
 * build-id nor .text, or cannot be read, ret->size is 0.
 */
void build_id_read(const struct elf_file *f, struct build_id *ret);

/* Returns true if both are build-ids (is_real) and equal. */
bool build_id_equal(const struct build_id *a, const struct build_id *b);

/* Writes the bytes as lower-case hexadecimal digits. */
void build_id_hex(const struct build_id *id, char ret[BUILD_ID_HEX_SIZE]);

#endif
