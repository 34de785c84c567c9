/*
 * Text that a target, a file or a server chose, as a terminal may see it:
 * control characters, which a terminal obeys, are shown as \xNN. They are the
 * bytes below 0x20, 0x7f, and U+0080 to U+009F in UTF-8.
 */
#ifndef LIB_BASE_ESCAPE_H
#define LIB_BASE_ESCAPE_H

#include <stddef.h>
#include <stdio.h>

/* What one byte, or one control character, becomes at most. */
#define ESCAPE_MAX 4

/*
 * Takes the next byte or control character of *s, which is not at its end;
 * returns how many bytes of ret, which gets no NUL, it has become.
 */
size_t escape_next(const char **s, char ret[ESCAPE_MAX]);

/* The whole of s; errors of out are the caller's to ask for (ferror(3)). */
void escape_write(const char *s, FILE *out);

#endif
