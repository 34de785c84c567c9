#include "daemon/id.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

void id_make(char ret[MSG_ID_SIZE])
{
	uint8_t bytes[16];

	/* Waits at boot at most; so few bytes never come in part. */
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		abort();
	bytes[6] = (uint8_t)((bytes[6] & 0x0f) | 0x40);
	bytes[8] = (uint8_t)((bytes[8] & 0x3f) | 0x80);
	for (size_t i = 0; i < sizeof(bytes); i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

bool id_is_one(const char text[MSG_ID_SIZE])
{
	return text[MSG_ID_SIZE - 1] == '\0' &&
	       strspn(text, "0123456789abcdef") == MSG_ID_SIZE - 1;
}
