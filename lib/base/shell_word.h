/*
 * Quotes a text as one word of a POSIX shell, for commands that are printed for the user to paste.
 */
#ifndef LIB_BASE_SHELL_WORD_H
#define LIB_BASE_SHELL_WORD_H

#include <stddef.h>

/* The most bytes of the result for a text of n bytes, with the NUL: each ' in it becomes '\'' */
#define SHELL_WORD_SIZE(n) (4 * (size_t)(n) + 3)

/*
 * Copies text to ret: unchanged if a shell reads it as one word without a special meaning, else in
 * single quotes. size: of ret, at least SHELL_WORD_SIZE(0). A text that does not fit is cut; the
 * result is still one word. Returns ret. Source: POSIX.1-2017, Shell Command Language, 2.2 Quoting.
 */
const char *shell_word(const char *text, char *ret, size_t size);

#endif
