/*
 * A unit test program is one tests/unit/DIR/check_NAME.c and tests/unit/main.c.
 * Its tests register themselves and run in the order of the file:
 *
 *	FIXTURE(set_up, tear_down)
 *
 *	TEST(what_holds)
 *	{
 *		ck_assert(...);
 *	}
 */
#ifndef TESTS_UNIT_SUITE_H
#define TESTS_UNIT_SUITE_H

#include <check.h>
#include <stdbool.h>
#include <string.h>

#include "lib/base/util.h"

/* A test, or with test NULL the fixture of those that follow it in the file. */
struct suite_entry {
	const TTest *test;
	int times;
	SFun set_up, tear_down;
	int line;
	struct suite_entry *next;
};

void suite_add(struct suite_entry *entry);

/* The body runs n times, _i from 0 on. With n of 0 it is left out. */
#define TESTS(name, n)                                                               \
	static void name(int _i);                                                    \
	__attribute__((constructor)) static void name##_add(void)                    \
	{                                                                            \
		static const TTest test = {#name, name, __FILE__, __LINE__};         \
		static struct suite_entry entry = {.test = &test, .line = __LINE__}; \
                                                                                     \
		entry.times = (int)(n);                                              \
		suite_add(&entry);                                                   \
	}                                                                            \
	static void name(int _i __attribute__((unused)))

#define TEST(name)		 TESTS(name, 1)
#define TEST_IF(name, condition) TESTS(name, (condition) ? 1 : 0)

/* Fails unless what is called returns 0, as all that can fail does. */
#define OK(call) ck_assert_int_eq(call, 0)

/* A text has another in it, or has not; a failure shows both. */
#define HAS(text, part)	  ck_assert_msg(strstr(text, part) != NULL, "no \"%s\" in: %s", part, text)
#define LACKS(text, part) ck_assert_msg(strstr(text, part) == NULL, "\"%s\" in: %s", part, text)

/* A file in memory with this text, at whose end its offset is. */
int suite_file(const char *text);

/* An empty directory for the test; it ends with the test, whatever is in it. */
const char *suite_directory(void);

/* The path of build/targets/NAME, of the build that the test program is of. */
void suite_target(const char *name, char *path, size_t size);

/*
 * The tests that follow in the file begin with set_up and end with tear_down,
 * in the process of each; NULL: with nothing.
 */
#define FIXTURE(set_up, tear_down)	    FIXTURE_AT(set_up, tear_down, __LINE__)
#define FIXTURE_AT(set_up, tear_down, line) FIXTURE_OF_LINE(set_up, tear_down, line)
#define FIXTURE_OF_LINE(begin, end, at)                                       \
	__attribute__((constructor)) static void fixture_of_line_##at(void)   \
	{                                                                     \
		static struct suite_entry entry = {                           \
			.set_up = (begin), .tear_down = (end), .line = (at)}; \
                                                                              \
		suite_add(&entry);                                            \
	}

/*
 * False where pidfd_getfd(2) is refused, as by the filter of system calls of
 * systemd-nspawn. The tests that need it are left out then: the program says so
 * in its last line, and its status is that of a skipped test, unless a test
 * fails.
 */
bool suite_has_getfd(void);

#endif
