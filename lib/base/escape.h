/*
 * Makes text from a target, a file or a server safe for a terminal. It escapes the characters of
 * utf8_is_unsafe(): control characters, and those that change the order or the lines of the text.
 *
 * Such a character becomes \xNN if it is below U+0100, else \u{NNNN}: the code point in
 * hexadecimal. For example, the two bytes of U+0085 become \x85, and the three bytes of U+202E
 * become \u{202e}. Backslashes and bytes that are not UTF-8 stay as they are, so the result cannot
 * be converted back.
 */
#ifndef LIB_BASE_ESCAPE_H
#define LIB_BASE_ESCAPE_H

#include <stddef.h>
#include <stdio.h>

/* The most bytes of the result for one character or one invalid byte. */
#define ESCAPE_MAX 8

/*
 * Converts the next character or invalid byte of the string *s, and moves *s behind it. The string
 * must not be empty. Writes no NUL. Returns the number of bytes written, which is larger than the
 * number of bytes read if the character was escaped, and equal to it otherwise.
 */
size_t escape_next(const char **s, char ret[ESCAPE_MAX]);

/* Writes s to out. The caller checks out for errors (ferror(3)). */
void escape_write(const char *s, FILE *out);

#endif
