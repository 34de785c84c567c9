#include "lib/base/glob.h"

#include <string.h>

#include "lib/base/util.h"
#include "tests/unit/suite.h"

static bool match_text(const char *pattern, const char *text, size_t n, bool slash_ends_star)
{
	return glob_match(pattern, strlen(pattern), text, n, slash_ends_star);
}

static const struct {
	const char *pattern, *text;
	bool in_path, anywhere; /* slash_ends_star or not */
} globs[] = {
	{"", "", true, true},
	{"", "a", false, false},
	{"a", "", false, false},
	{"*", "", true, true},
	{"*", "a/b", false, true},
	{"**", "a/b", true, true},
	{"/usr/bin/redis-server", "/usr/bin/redis-server", true, true},
	{"/usr/bin/redis-server", "/usr/bin/redis-server2", false, false},
	{"/usr/bin/redis-server", "/usr/bin/redis-serve", false, false},
	{"/usr/bin/python3*", "/usr/bin/python3.11", true, true},
	{"/usr/bin/python3*", "/usr/bin/python3/x", false, true},
	{"/usr/lib/*/bin/postgres", "/usr/lib/15/bin/postgres", true, true},
	{"/usr/lib/*/bin/postgres", "/usr/lib/a/b/bin/postgres", false, true},
	{"/srv/**/app", "/srv/a/b/app", true, true},
	{"**/bin/*x", "/a/bin/b/bin/x", true, true},
	{"**/*b/c", "/ab/xb/c", true, true},
	{"**/a*/c", "/ab/d/c", false, true},
	{"*ab*ab", "abxab", true, true},
	{"*ab*ab", "ab", false, false},
	{"*aab", "aaab", true, true},
	{"a?c", "abc", true, true},
	{"a?c", "a/c", false, true},
	{"a?c", "ac", false, false},
	{"a*b*c", "aXbXbXc", true, true},
	{"a*b*c", "acb", false, false},
	{"[a]", "a", false, false},
	{"\\*", "\\x", true, true},
};

TESTS(patterns_match_as_the_table_says, array_size(globs))
{
	const char *text = globs[_i].text;

	ck_assert_int_eq(match_text(globs[_i].pattern, text, strlen(text), true),
			 globs[_i].in_path);
	ck_assert_int_eq(match_text(globs[_i].pattern, text, strlen(text), false),
			 globs[_i].anywhere);
}

/* fnmatch(3) would take longer than the age of the universe. */
TEST(many_stars_take_little_time)
{
	char text[4096];

	memset(text, 'a', sizeof(text));
	ck_assert(!match_text("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", text, sizeof(text), false));
	ck_assert(!match_text("**a*a**a*a**a*a**a*a**a*a**a*a**a*b", text, sizeof(text), true));
}

/* Bytes after the end of the pattern and of the text are not read. */
TEST(bytes_after_the_given_lengths_are_not_read)
{
	ck_assert(glob_match("ab**", 3, "abcd", 3, true));
	ck_assert(!glob_match("ab*x", 3, "ab/", 3, true));
	ck_assert(glob_match("a*", 1, "ab", 1, false));
}

static const struct {
	const char *patterns, *path;
	bool fits;
} lists[] = {
	{"", "/a", false},
	{"  ", "/a", false},
	{"a", "/x/a", true},
	{"b  a", "/x/a", true},
	{"/x/*\t/y/**", "/y/z/a", true},
	{"/x/*", "/x/z/a", false},
	{"x", "/x/a", false},
	{"lib*.so*", "/opt/x/libapp.so.1", true},
	{"a", "a", true},
};

TESTS(any_pattern_of_a_list_may_match, array_size(lists))
{
	ck_assert_int_eq(glob_match_any(lists[_i].patterns, lists[_i].path), lists[_i].fits);
}
