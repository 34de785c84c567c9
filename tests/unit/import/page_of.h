/* Makes a page of unpacked data (proto/export/html/html.h), for tests and the fuzz target. */
#ifndef TESTS_UNIT_IMPORT_PAGE_OF_H
#define TESTS_UNIT_IMPORT_PAGE_OF_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define PAGE_OF_HEAD "<!DOCTYPE html><script id=\"data\">"

/* Returns the page, which the caller frees; NULL: no memory. It has a NUL at the end. */
static inline char *page_of(const uint8_t *data, size_t n)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789+/";
	uLongf size = compressBound(n);
	uint8_t *packed = calloc(size + 3, 1);
	char *page = calloc(sizeof(PAGE_OF_HEAD) + (size + 2) / 3 * 4 + sizeof("</script>"), 1);
	char *at;

	if (packed == NULL || page == NULL || compress(packed, &size, data, n) != Z_OK) {
		free(packed);
		free(page);
		return NULL;
	}
	at = stpcpy(page, PAGE_OF_HEAD);
	for (size_t i = 0; i < size; i += 3) {
		const uint32_t bits =
			(uint32_t)packed[i] << 16 | (uint32_t)packed[i + 1] << 8 | packed[i + 2];

		*at++ = digits[bits >> 18];
		*at++ = digits[bits >> 12 & 63];
		*at++ = i + 1 < size ? digits[bits >> 6 & 63] : '=';
		*at++ = i + 2 < size ? digits[bits & 63] : '=';
	}
	memcpy(at, "</script>", sizeof("</script>"));
	free(packed);
	return page;
}

#endif
