#include "lib/base/string_pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suite.h"

#define N_STRINGS 20000

static const char *intern(struct string_pool *t, const char *s)
{
	const char *copy = NULL;

	OK(string_pool_intern(t, s, &copy));
	ck_assert_str_eq(copy, s);
	return copy;
}

TEST(equal_strings_have_one_pointer)
{
	static const char *first[N_STRINGS];
	struct string_pool t;
	char s[32];

	string_pool_init(&t, 7);
	for (int i = 0; i < N_STRINGS; i++) {
		(void)snprintf(s, sizeof(s), "name-%d", i);
		first[i] = intern(&t, s);
		ck_assert_ptr_ne(first[i], s);
	}
	for (int i = 0; i < N_STRINGS; i++) {
		(void)snprintf(s, sizeof(s), "name-%d", i);
		ck_assert_ptr_eq(intern(&t, s), first[i]);
	}
	string_pool_fini(&t);
	ck_assert_uint_eq(t.n, 0);
	intern(&t, "again");
	string_pool_fini(&t);
	string_pool_fini(NULL);
}

/* Strings longer than a block, between short ones. */
TEST(strings_longer_than_a_block_are_kept)
{
	struct string_pool t;
	char *s = malloc(100001);
	const char *empty, *copy;

	ck_assert_ptr_nonnull(s);
	memset(s, 'x', 100000);
	s[100000] = '\0';
	string_pool_init(&t, 0);
	empty = intern(&t, "");
	copy = intern(&t, s);
	intern(&t, "behind");
	s[99999] = 'y';
	ck_assert_ptr_ne(intern(&t, s), copy);
	ck_assert_ptr_eq(intern(&t, ""), empty);
	ck_assert_str_eq(empty, "");
	string_pool_fini(&t);
	free(s);
}
