#include "lib/base/escape.h"

#include <stdlib.h>

#include "tests/unit/suite.h"

static const struct {
	const char *text, *shown;
} cases[] = {
	{"", ""},
	{"plain \\ text", "plain \\ text"},
	{"\x1b[31m\n\t\x7f", "\\x1b[31m\\x0a\\x09\\x7f"},
	/* An umlaut, and the control character CSI, in UTF-8. */
	{"\xc3\xa4\xc2\x9b", "\xc3\xa4\\x9b"},
	/* A no-break space; a truncated sequence at the end. */
	{"\xc2\xa0\xc2", "\xc2\xa0\xc2"},
	/* Marks that change the direction of text, and separators of lines; beside others. */
	{"a\u202eb\u2066\u2069\u061c\u200f", "a\\u{202e}b\\u{2066}\\u{2069}\\u{061c}\\u{200f}"},
	{"\u2028\u2029\u200e\u202a", "\\u{2028}\\u{2029}\\u{200e}\\u{202a}"},
	{"\u2010\u202f\u2065\u206a\u061b\u20ac", "\u2010\u202f\u2065\u206a\u061b\u20ac"},
	{"\xe2\x80", "\xe2\x80"},
};

TESTS(control_characters_are_escaped, array_size(cases))
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	ck_assert_ptr_nonnull(out);
	escape_write(cases[_i].text, out);
	OK(fclose(out));
	ck_assert_str_eq(text, cases[_i].shown);
	free(text);
}
