#include "lib/base/shell_word.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

/* Text other than ASCII is quoted: the locale decides which characters are blanks. */
static bool is_plain(const char *text)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "abcdefghijklmnopqrstuvwxyz"
				    "0123456789_@%+=:,./-";

	return text[0] != '\0' && text[strspn(text, plain)] == '\0';
}

const char *shell_word(const char *text, char *ret, size_t size)
{
	const char *quote = is_plain(text) ? "" : "'";
	size_t n = strlen(quote);

	assert(size >= SHELL_WORD_SIZE(0));
	memcpy(ret, quote, n);
	for (; *text != '\0'; text++) {
		char one[] = {*text, '\0'};
		const char *part = *text == '\'' ? "'\\''" : one;
		const size_t length = strlen(part);

		if (n + length + strlen(quote) >= size)
			break;
		memcpy(ret + n, part, length);
		n += length;
	}
	memcpy(ret + n, quote, strlen(quote) + 1);
	return ret;
}
