/*
 * Makes text from a target, a file or a server safe for a terminal: the characters of
 * utf8_is_unsafe(), which a terminal would obey, or which would show the text in another order,
 * become \xNN below U+0100, else \u{NNNN}, with the code point in hexadecimal: the two bytes of
 * U+0085 become \x85, the three of U+202E \u{202e}. Backslashes and invalid bytes stay as they are,
 * so the result cannot be converted back.
 */
#ifndef LIB_BASE_ESCAPE_H
#define LIB_BASE_ESCAPE_H

#include <stddef.h>
#include <stdio.h>

/* The longest result for one character or one invalid byte. */
#define ESCAPE_MAX 8

/*
 * Converts the next character or invalid byte of *s, and moves *s behind it. *s must not be empty.
 * Writes no NUL. Returns the number of bytes written, which is larger than the number of bytes read
 * exactly if the character was escaped.
 */
size_t escape_next(const char **s, char ret[ESCAPE_MAX]);

/* Writes s to out. The caller checks out for errors (ferror(3)). */
void escape_write(const char *s, FILE *out);

#endif
