#include "lib/base/escape.h"

#include <stdint.h>
#include <string.h>

#include "lib/base/utf8.h"

size_t escape_next(const char **s, char ret[ESCAPE_MAX])
{
	const char *from = *s;
	const size_t length = utf8_length(from), n = length > 0 ? length : 1;
	char escaped[ESCAPE_MAX + 1];
	uint16_t number; /* the greatest of utf8_is_unsafe() is U+2069 */
	int size;

	*s += n;
	if (length == 0 || !utf8_is_unsafe(from)) {
		memcpy(ret, from, n);
		return n;
	}
	number = (uint16_t)utf8_code_point(from, n);
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
