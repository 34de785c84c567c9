/*
 * Parses and writes digits: decimal numbers, and bytes as lower-case hexadecimal digits. Unlike
 * strtoull(3) these functions accept no sign, blank or prefix and do not depend on the locale.
 */
#ifndef LIB_BASE_DIGITS_H
#define LIB_BASE_DIGITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns 0 to 15, or -1 if c is no lower-case hexadecimal digit. */
int digits_value(char c);

/* Writes two digits for each of n bytes, and a NUL: 2 * n + 1 characters. */
void digits_of_bytes(const uint8_t *bytes, size_t n, char *ret);

/*
 * Parses a text that is a decimal number from min to max and nothing else. Returns false, and
 * writes nothing, if it is not.
 */
bool digits_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret);

/* Parses a pid: a decimal number from 1 to INT32_MAX. Returns false if the text is none. */
bool digits_pid(const char *text, int32_t *ret);

#endif
