/*
 * A text as one word of a POSIX shell, for commands that are printed so that
 * the user can paste them.
 */
#ifndef LIB_BASE_SHELL_WORD_H
#define LIB_BASE_SHELL_WORD_H

#include <stddef.h>

/* Enough for a text of n bytes: each may be a quote, which becomes '\''. */
#define SHELL_WORD_SIZE(n) (4 * (size_t)(n) + 3)

/*
 * Copies text to ret, of size bytes: as it is where a shell reads it as one
 * word with no special meaning, else in single quotes. A text that does not
 * fit is cut at a byte. Returns ret.
 * Source: POSIX.1-2017, Shell Command Language, 2.2 Quoting.
 */
const char *shell_word(const char *text, char *ret, size_t size);

#endif
