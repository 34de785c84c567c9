#include "lib/base/shell_word.h"

#include <string.h>

#include "lib/base/util.h"
#include "tests/unit/suite.h"

TEST(plain_words_are_not_quoted)
{
	static const char *const words[] = {
		"p.html", "/tmp/a-b_c/p.pb.gz", "./x", "a+b=c:d,e@f%", "-",
	};
	char word[SHELL_WORD_SIZE(64)];

	for (size_t i = 0; i < array_size(words); i++)
		ck_assert_str_eq(shell_word(words[i], word, sizeof(word)), words[i]);
}

TEST(other_words_are_quoted)
{
	static const struct {
		const char *text, *word;
	} cases[] = {
		{"", "''"},
		{"a b", "'a b'"},
		{"it's", "'it'\\''s'"},
		{"'", "''\\'''"},
		{"$(id)", "'$(id)'"},
		{"~", "'~'"},
		{"\xc3\xa4", "'\xc3\xa4'"},
		{"a\nb", "'a\nb'"},
	};
	char word[SHELL_WORD_SIZE(64)];

	for (size_t i = 0; i < array_size(cases); i++)
		ck_assert_str_eq(shell_word(cases[i].text, word, sizeof(word)), cases[i].word);
}

TEST(the_longest_result_fits)
{
	char word[SHELL_WORD_SIZE(3)], small[SHELL_WORD_SIZE(1)];

	ck_assert_uint_eq(strlen(shell_word("'''", word, sizeof(word))), sizeof(word) - 1);
	ck_assert_str_eq(shell_word("''", small, sizeof(small)), "''\\'''");
}
