#include "lib/base/escape.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/digits.h"

size_t escape_next(const char **s, char ret[ESCAPE_MAX])
{
	uint8_t c = (uint8_t)(*s)[0];
	const uint8_t next = (uint8_t)(*s)[1];
	const bool is_c1 = c == 0xc2 && next >= 0x80 && next < 0xa0;
	char escaped[ESCAPE_MAX + 1] = "\\x";

	*s += is_c1 ? 2 : 1;
	ret[0] = (char)c;
	if (c >= 0x20 && c != 0x7f && !is_c1)
		return 1;
	if (is_c1)
		c = next;
	digits_of_bytes(&c, 1, escaped + 2);
	memcpy(ret, escaped, ESCAPE_MAX);
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
