/* Code given as a few bytes in a test, read by struct x86_64_code. */
#ifndef TESTS_UNIT_UNWIND_CODE_TEXT_H
#define TESTS_UNIT_UNWIND_CODE_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/util.h"

/* The address of the first byte. */
#define CODE_TEXT_BASE 0x1000

struct code_text {
	const void *bytes;
	size_t n;
};

/* ctx is a struct code_text. */
static inline size_t code_text_read(void *ctx, uint64_t vaddr, uint8_t *bytes, size_t n)
{
	const struct code_text *t = ctx;

	if (vaddr < CODE_TEXT_BASE || vaddr - CODE_TEXT_BASE >= t->n)
		return 0;
	n = min_size(n, t->n - (size_t)(vaddr - CODE_TEXT_BASE));
	memcpy(bytes, (const uint8_t *)t->bytes + (vaddr - CODE_TEXT_BASE), n);
	return n;
}

#endif
