/* Numbers and bytes as digits: decimal, and lower-case hexadecimal. */
#ifndef LIB_BASE_DIGITS_H
#define LIB_BASE_DIGITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 0 to 15; -1: c is no hexadecimal digit, or an upper-case one. */
int digits_value(char c);

/* Two hexadecimal digits for each of n bytes, and a NUL: 2 * n + 1 in all. */
void digits_of_bytes(const uint8_t *bytes, size_t n, char *ret);

/*
 * The decimal number that text is, and nothing but digits. False, and *ret
 * stays as it is, if it is none, or not from min to max.
 */
bool digits_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret);

/* A pid that a person has typed: digits alone. False if it cannot be one. */
bool digits_pid(const char *text, int32_t *ret);

#endif
