/*
 * Reads unsigned LEB128 numbers, as in DWARF: seven bits in each byte, the lowest first; the top
 * bit says that another byte follows. Source: DWARF 5, 7.6.
 */
#ifndef LIB_BASE_LEB128_H
#define LIB_BASE_LEB128_H

#include <stdbool.h>
#include <stdint.h>

/* The longest encoding of 64 bits. */
#define LEB128_BYTES_MAX 10

/*
 * Reads the number at *at, and moves *at behind it. Returns false if the number does not end before
 * end, or is longer than LEB128_BYTES_MAX.
 */
static inline bool leb128_read(const uint8_t **at, const uint8_t *end, uint64_t *ret)
{
	*ret = 0;
	for (unsigned int i = 0; i < LEB128_BYTES_MAX && *at < end; i++) {
		const uint8_t byte = *(*at)++;

		*ret |= (uint64_t)(byte & 0x7f) << 7 * i;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

#endif
