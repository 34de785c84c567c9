#include "daemon/common/id.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "lib/base/digits.h"

void id_make(char ret[MSG_ID_SIZE])
{
	uint8_t bytes[16];

	/* Waits at boot at most; so few bytes never come in part. */
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		abort();
	bytes[6] = (uint8_t)((bytes[6] & 0x0f) | 0x40);
	bytes[8] = (uint8_t)((bytes[8] & 0x3f) | 0x80);
	digits_of_bytes(bytes, sizeof(bytes), ret);
}

bool id_is_one(const char text[MSG_ID_SIZE])
{
	return text[MSG_ID_SIZE - 1] == '\0' && strspn(text, "0123456789abcdef") == MSG_ID_SIZE - 1;
}
