/*
 * Matches patterns of the configuration against paths and command lines. "?" matches one character,
 * "*" any number of characters. There are no brackets and no escapes. With slash_ends_star, "*" and
 * "?" do not match a slash, and "**" does.
 *
 * Time: the product of both lengths; with "*" and "**" mixed, the text's length counts twice.
 * fnmatch(3) is not used: on text that a process chose, its time doubles with each star.
 */
#ifndef LIB_BASE_GLOB_H
#define LIB_BASE_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* Returns whether the pattern matches all n bytes of text. A NUL in text counts as a blank. */
bool glob_match(const char *pattern, size_t pattern_n, const char *text, size_t n,
		bool slash_ends_star);

/*
 * Returns whether one of the patterns, which are separated by blanks, matches the path. A pattern
 * without a slash is matched against the last component.
 */
bool glob_match_any(const char *patterns, const char *path);

#endif
