#include "lib/base/escape.h"

#include <stdbool.h>
#include <stdint.h>

static const char hex[] = "0123456789abcdef";

size_t escape_next(const char **s, char ret[ESCAPE_MAX])
{
	uint8_t c = (uint8_t)(*s)[0];
	const uint8_t next = (uint8_t)(*s)[1];
	const bool is_c1 = c == 0xc2 && next >= 0x80 && next < 0xa0;

	*s += is_c1 ? 2 : 1;
	ret[0] = (char)c;
	if (c >= 0x20 && c != 0x7f && !is_c1)
		return 1;
	if (is_c1)
		c = next;
	ret[0] = '\\';
	ret[1] = 'x';
	ret[2] = hex[c >> 4];
	ret[3] = hex[c & 0xf];
	return ESCAPE_MAX;
}

void escape_write(const char *s, FILE *out)
{
	char escaped[ESCAPE_MAX];

	while (*s != '\0') {
		const size_t n = escape_next(&s, escaped);

		(void)fwrite(escaped, 1, n, out);
	}
}
