/*
 * Patterns: "?" is a character, "*" any number of them. No brackets, no
 * escapes. Where a slash ends a star, "*" and "?" stop there, and "**" does
 * not.
 *
 * fnmatch(3) has more, and takes time that doubles with each star on text that
 * a stranger chose for it. Here it is the product of the lengths, squared in
 * the text if "*" and "**" are mixed.
 */
#ifndef LIB_BASE_GLOB_H
#define LIB_BASE_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* All of the n bytes of text; a NUL among them is a blank to the pattern. */
bool glob_match(const char *pattern, size_t pattern_n, const char *text, size_t n,
		bool slash_ends_star);

/*
 * Does one of the patterns, with blanks between them, fit the path? One
 * without a slash is for the last component.
 */
bool glob_match_any(const char *patterns, const char *path);

#endif
