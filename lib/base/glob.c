#include "lib/base/glob.h"

#include <string.h>

/* Where to continue after a mismatch: the star then matches one character more. */
struct star {
	const char *next; /* pattern after the star; NULL: no star */
	size_t at;	  /* text after the characters that the star matches */
};

/*
 * Only the last star of each kind needs to be tried again: it can match whatever an earlier one
 * would. If the last "*" fails at a slash, the last "**" may still match more.
 */
bool glob_match(const char *pattern, size_t pattern_n, const char *text, size_t n,
		bool slash_ends_star)
{
	const char *p = pattern, *const end = pattern + pattern_n;
	struct star any = {NULL, 0}, part = {NULL, 0};
	size_t at = 0;

	for (;;) {
		char c = at < n && text[at] != '\0' ? text[at] : ' ';

		if (p < end && *p == '*' && slash_ends_star && (p + 1 == end || p[1] != '*')) {
			part = (struct star){++p, at};
			continue;
		}
		if (p < end && *p == '*') {
			while (p < end && *p == '*')
				p++;
			any = (struct star){p, at};
			part.next = NULL;
			continue;
		}
		if (at == n && p == end)
			return true;
		if (at < n && p < end &&
		    (*p == c || (*p == '?' && !(slash_ends_star && c == '/')))) {
			p++;
			at++;
			continue;
		}
		if (part.next != NULL && part.at < n && text[part.at] != '/') {
			p = part.next;
			at = ++part.at;
			continue;
		}
		part.next = NULL;
		if (any.next == NULL || any.at == n)
			return false;
		p = any.next;
		at = ++any.at;
	}
}

bool glob_match_any(const char *patterns, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash == NULL ? path : slash + 1;

	while (*patterns != '\0') {
		size_t n = strcspn(patterns, " \t");
		const char *text = memchr(patterns, '/', n) == NULL ? base : path;

		if (n > 0 && glob_match(patterns, n, text, strlen(text), true))
			return true;
		patterns += n + (patterns[n] != '\0');
	}
	return false;
}
