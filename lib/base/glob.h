/*
 * Matches patterns of the configuration against paths and command lines. "?" matches one byte,
 * "*" any number of bytes. There are no brackets and no escapes. With slash_ends_star, "*" and
 * "?" do not match a slash, and "**" does.
 *
 * Time: O(pattern_n * n), or O(pattern_n * n * n) if the pattern has both "*" and "**".
 * fnmatch(3) is not used: on text that a process chose, its time doubles with each star.
 */
#ifndef LIB_BASE_GLOB_H
#define LIB_BASE_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Returns true if the pattern matches all n bytes of text. A NUL in text counts as a space, as
 * between the arguments of /proc/PID/cmdline, whose last NUL the caller leaves out.
 */
bool glob_match(const char *pattern, size_t pattern_n, const char *text, size_t n,
		bool slash_ends_star);

/*
 * Returns true if one of the patterns, which spaces or tabs separate, matches the path, with
 * slash_ends_star. A pattern without a slash is matched against the last component. Returns false
 * without patterns.
 */
bool glob_match_any(const char *patterns, const char *path);

#endif
