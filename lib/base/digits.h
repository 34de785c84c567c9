/*
 * Parses decimal numbers and hexadecimal digits, and writes bytes as lower-case hexadecimal digits.
 * Unlike strtoull(3) these functions accept no sign, blank or prefix and do not depend on the
 * locale.
 */
#ifndef LIB_BASE_DIGITS_H
#define LIB_BASE_DIGITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the value of a digit 0 to 9 or a to f; -1 for any other character, also for A to F. */
int digits_value(char c);

/* Writes two hexadecimal digits for each of n bytes, and a NUL: ret has room for 2 * n + 1. */
void digits_of_bytes(const uint8_t *bytes, size_t n, char *ret);

/*
 * Parses a decimal number. Returns false, and writes nothing, if the text is anything else or the
 * number is not from min to max.
 */
bool digits_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret);

/* Parses a pid, a number from 1 to INT32_MAX, as digits_number() does. */
bool digits_pid(const char *text, int32_t *ret);

#endif
