/*
 * Makes text from a target, a file or a server safe for a terminal: control characters, which a
 * terminal would obey, become \xNN, where NN is the number of the character. These are the bytes
 * below 0x20, 0x7f, and the characters U+0080 to U+009F in UTF-8: the two bytes of U+0085 become
 * \x85. Backslashes stay as they are, so the result cannot be converted back.
 */
#ifndef LIB_BASE_ESCAPE_H
#define LIB_BASE_ESCAPE_H

#include <stddef.h>
#include <stdio.h>

/* The longest result for one byte or one control character. */
#define ESCAPE_MAX 4

/*
 * Converts the next byte or control character of *s, and moves *s behind it. *s must not be empty.
 * Returns the number of bytes written to ret, which gets no NUL.
 */
size_t escape_next(const char **s, char ret[ESCAPE_MAX]);

/* Writes s to out. The caller checks out for errors (ferror(3)). */
void escape_write(const char *s, FILE *out);

#endif
