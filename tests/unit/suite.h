/* Each tests/unit/DIR/check_NAME.c defines suite(); tests/unit/main.c runs it. */
#ifndef TESTS_UNIT_SUITE_H
#define TESTS_UNIT_SUITE_H

#include <check.h>

Suite *suite(void);

#endif
