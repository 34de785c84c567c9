#include "daemon/release.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/suite.h"

#define ENTRY "SENTRY_RELEASE="

static const struct {
	const char *text;
	size_t len;
	const char *out; /* NULL: none */
} environs[] = {
	{"", 0, NULL},
	{"A=1\0" ENTRY "app@1\0B=2", 4 + 21 + 3, "app@1"},
	{ENTRY "last", 19, "last"}, /* without its NUL */
	{ENTRY "1234567", 22, "1234567"},
	{ENTRY "12345678", 23, NULL}, /* does not fit */
	{ENTRY, 15, NULL},
	{"X" ENTRY "no", 18, NULL},
	{"SENTRY_RELEASES=no", 18, NULL},
	{"A=\0\0\0" ENTRY "x", 5 + 16, "x"},
	{ENTRY "12345678\0" ENTRY "second", 24 + 21, "second"},
};

START_TEST(of_environ)
{
	char out[8] = "before";
	bool found = release_of_environ(environs[_i].text, environs[_i].len,
					out, sizeof(out));

	ck_assert_int_eq(found, environs[_i].out != NULL);
	ck_assert_str_eq(out, found ? environs[_i].out : "before");
}
END_TEST

START_TEST(clean)
{
	char text[] = "a\n\x7f\xff\xc3\xa4z";

	release_clean(text);
	ck_assert_str_eq(text, "a___\xc3\xa4z");
}
END_TEST

START_TEST(told_once)
{
	char text[16];

	ck_assert(release_is_new("a@1"));
	ck_assert(release_is_new("b@1"));
	ck_assert(!release_is_new("a@1"));
	ck_assert(!release_is_new("b@1"));
	for (int i = 2; i < RELEASE_TOLD_MAX; i++) {
		(void)snprintf(text, sizeof(text), "c@%d", i);
		ck_assert(release_is_new(text));
	}
	ck_assert(!release_is_new(text));
	/* There is no room for more. */
	ck_assert(release_is_new("d@1"));
	ck_assert(release_is_new("d@1"));
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("release");
	TCase *c = tcase_create("release");

	tcase_add_loop_test(c, of_environ, 0,
			    (int)(sizeof(environs) / sizeof(environs[0])));
	tcase_add_test(c, clean);
	tcase_add_test(c, told_once);
	suite_add_tcase(s, c);
	return s;
}
