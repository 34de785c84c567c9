/* tests/unit/main.c runs the suite() of a tests/unit/DIR/check_NAME.c. */
#ifndef TESTS_UNIT_SUITE_H
#define TESTS_UNIT_SUITE_H

#include <check.h>
#include <stdbool.h>

Suite *suite(void);

/*
 * False where pidfd_getfd(2) is refused, as by the filter of system calls of
 * systemd-nspawn. suite() leaves out the tests that need it then: the program
 * says so in its last line, and its status is that of a skipped test, unless a
 * test fails.
 */
bool suite_has_getfd(void);

#endif
