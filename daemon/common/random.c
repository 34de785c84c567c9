#include "daemon/common/random.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "lib/base/digits.h"

void random_bytes(void *ret, size_t n)
{
	if (getrandom(ret, n, 0) != (ssize_t)n)
		memset(ret, 0xff, n);
}

uint64_t random_number(void)
{
	uint64_t number;

	random_bytes(&number, sizeof(number));
	return number;
}

uint64_t random_below(uint64_t n)
{
	return random_number() % n;
}

void random_id(char ret[MSG_ID_SIZE])
{
	uint8_t bytes[16];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		abort();
	/* Version 4, variant 1: RFC 4122, section 4.4. */
	bytes[6] = (uint8_t)((bytes[6] & 0x0f) | 0x40);
	bytes[8] = (uint8_t)((bytes[8] & 0x3f) | 0x80);
	digits_of_bytes(bytes, sizeof(bytes), ret);
}

bool random_id_is_valid(const char text[MSG_ID_SIZE])
{
	return text[MSG_ID_SIZE - 1] == '\0' && strspn(text, "0123456789abcdef") == MSG_ID_SIZE - 1;
}
