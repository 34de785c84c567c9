/*
 * Numbers of variable length, as DWARF has them: seven bits a byte, the lowest
 * first, and a bit that says that more follow. DWARF 5, 7.6.
 */
#ifndef LIB_BASE_LEB128_H
#define LIB_BASE_LEB128_H

#include <stdbool.h>
#include <stdint.h>

/* Of 64 bits; longer ones are nobody's. */
#define LEB128_BYTES_MAX 10

/*
 * Reads the unsigned one at *at, which moves behind it. False if it does not
 * end before end, or is longer.
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
