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

/*
 * Check writes the line of each assertion that holds into a file, with two system calls, to name
 * it if a signal ends the test: for tests that assert a million times, most of their time. So only
 * a line below all others that have held in the process is written. An assertion that fails names
 * its own line.
 */
static inline void suite_held(const char *file, int line)
{
	static int lowest;

	if (line <= lowest)
		return;
	lowest = line;
	_mark_point(file, line);
}
#define _mark_point suite_held

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

/* Fails the test unless the call returns 0. Functions that can fail return 0 or -errno. */
#define OK(call) ck_assert_int_eq(call, 0)

/* Check that text contains part, or does not; a failure shows both texts. */
#define HAS(text, part)	  ck_assert_msg(strstr(text, part) != NULL, "no \"%s\" in: %s", part, text)
#define LACKS(text, part) ck_assert_msg(strstr(text, part) == NULL, "\"%s\" in: %s", part, text)

/* Makes a memfd with this text; its offset is at the end. The caller closes it. */
int suite_file(const char *text);

/* Returns the path of an empty directory, which is removed with its contents after the test. */
const char *suite_directory(void);

/* Writes the path of targets/NAME in the build directory that contains the test program. */
void suite_target(const char *name, char *path, size_t size);

/*
 * For the tests that follow in the file: set_up runs before each test and tear_down
 * after it, in the process of the test. NULL: nothing runs.
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
 * Returns false if pidfd_getfd(2) is refused, as by the seccomp filter of systemd-nspawn.
 * The caller leaves out the tests that need the call. The program then prints that in its
 * last line, and has the exit status of a skipped test, unless a test fails.
 */
bool suite_has_getfd(void);

#endif
