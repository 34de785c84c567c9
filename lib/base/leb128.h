/*
 * Reads unsigned LEB128 numbers, as in DWARF: each byte has seven bits of the number, the lowest
 * first. The top bit of a byte says that another byte follows. Source: DWARF 5, 7.6.
 */
#ifndef LIB_BASE_LEB128_H
#define LIB_BASE_LEB128_H

#include <stdbool.h>
#include <stdint.h>

/* The most bytes of a number of 64 bits. */
#define LEB128_BYTES_MAX 10

/*
 * Reads the number at *at, and moves *at behind it. Bits above the 64th are dropped. Returns false
 * if the number does not end before end, or has more than LEB128_BYTES_MAX bytes. Then *at and *ret
 * have no meaning.
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
