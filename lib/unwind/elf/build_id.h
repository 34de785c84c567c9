/*
 * Who an ELF file says it is: its build-id, or what symbolic makes up for a
 * file that has none (docs/FORMATS.md, debug_id).
 */
#ifndef LIB_UNWIND_ELF_BUILD_ID_H
#define LIB_UNWIND_ELF_BUILD_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/unwind/elf/elf_file.h"

/* 20 bytes (SHA-1) by default; ld --build-id=0x... takes any length. */
#define BUILD_ID_MAX 64
/* In hex, NUL included. */
#define BUILD_ID_HEX_SIZE (2 * BUILD_ID_MAX + 1)

struct build_id {
	uint8_t bytes[BUILD_ID_MAX];
	size_t size;  /* 0: none could be made */
	bool is_real; /* not made up */
};

void build_id_read(const struct elf_file *f, struct build_id *ret);

/* Both are real, and the same. */
bool build_id_equal(const struct build_id *a, const struct build_id *b);

/* In lower-case digits. */
void build_id_hex(const struct build_id *id, char ret[BUILD_ID_HEX_SIZE]);

#endif
