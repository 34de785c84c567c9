/*
 * Matches patterns of the configuration against paths and command lines. "?" matches one byte, "*"
 * any number of bytes, 0 included. All other characters match themselves. If slash_ends_star is
 * set, "*" and "?" match no slash, and "**" matches any number of bytes, slashes included: "a*z"
 * then matches "abz", but not "ab/z", and "a**z" matches both.
 *
 * Time: O(pattern_n * n), or O(pattern_n * n * n) if the pattern has both "*" and "**".
 * fnmatch(3) is not used: a process can choose text for which each star doubles the time.
 */
#ifndef LIB_BASE_GLOB_H
#define LIB_BASE_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Returns true if the pattern of pattern_n bytes matches all n bytes of text. A NUL in text counts
 * as a space, because NULs separate the arguments in /proc/PID/cmdline. The caller leaves out the
 * last NUL of that file.
 */
bool glob_match(const char *pattern, size_t pattern_n, const char *text, size_t n,
		bool slash_ends_star);

/*
 * Returns true if one of the patterns matches the path, with slash_ends_star. Spaces or tabs
 * separate the patterns. A pattern without a slash is matched against the last component of the
 * path. Returns false if there is no pattern.
 */
bool glob_match_any(const char *patterns, const char *path);

#endif
