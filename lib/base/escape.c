#include "lib/base/escape.h"

#include <stdint.h>
#include <string.h>

#include "lib/base/utf8.h"

/* Returns the number of a character of up to three bytes. */
static uint16_t number_of(const char *s, size_t n)
{
	const uint8_t *b = (const uint8_t *)s;

	if (n == 1)
		return b[0];
	if (n == 2)
		return (uint16_t)((b[0] & 0x1f) << 6 | (b[1] & 0x3f));
	return (uint16_t)((b[0] & 0x0f) << 12 | (b[1] & 0x3f) << 6 | (b[2] & 0x3f));
}

size_t escape_next(const char **s, char ret[ESCAPE_MAX])
{
	const char *from = *s;
	const size_t length = utf8_length(from), n = length > 0 ? length : 1;
	char escaped[ESCAPE_MAX + 1];
	uint16_t number;
	int size;

	*s += n;
	if (length == 0 || !utf8_is_unsafe(from)) {
		memcpy(ret, from, n);
		return n;
	}
	number = number_of(from, n);
	size = snprintf(escaped, sizeof(escaped), number < 0x100 ? "\\x%02x" : "\\u{%04x}", number);
	memcpy(ret, escaped, (size_t)size);
	return (size_t)size;
}

void escape_write(const char *s, FILE *out)
{
	char escaped[ESCAPE_MAX];

	while (*s != '\0') {
		const size_t n = escape_next(&s, escaped);

		(void)fwrite(escaped, 1, n, out);
	}
}
