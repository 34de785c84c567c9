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
