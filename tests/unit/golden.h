/*
 * Compares output with a golden file: a file of tests/golden that has the expected output. After a
 * change of the output that is wanted, write the text that the failing test prints into the golden
 * file, and check the difference.
 */
#ifndef TESTS_UNIT_GOLDEN_H
#define TESTS_UNIT_GOLDEN_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More than any golden file. */
#define GOLDEN_SIZE_MAX 65536

/* Fails the test unless text is equal to the file at path, which is relative to the project. */
static inline void golden_check(const char *text, const char *path)
{
	char *expected = calloc(1, GOLDEN_SIZE_MAX);
	FILE *f = fopen(path, "r");

	ck_assert_ptr_nonnull(expected);
	ck_assert_msg(f != NULL, "no %s: run in the project's directory", path);
	ck_assert_uint_lt(fread(expected, 1, GOLDEN_SIZE_MAX, f), GOLDEN_SIZE_MAX);
	(void)fclose(f);
	ck_assert_msg(strcmp(text, expected) == 0, "%s is not\n%s", path, text);
	free(expected);
}

#endif
