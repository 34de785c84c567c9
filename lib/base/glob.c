#include "lib/base/glob.h"

#include <string.h>

/* Where to go on when what follows a star does not fit: the star takes more. */
struct star {
	const char *rest; /* of the pattern, behind it; NULL: there is none */
	size_t at;	  /* in the text, behind what it has taken */
};

/*
 * Of stars of one kind only the last one ever needs to take more: it can take
 * what those before it would. Where a star ends at a slash, the last "**" may
 * still go beyond.
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
			part.rest = NULL;
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
		if (part.rest != NULL && part.at < n && text[part.at] != '/') {
			p = part.rest;
			at = ++part.at;
			continue;
		}
		part.rest = NULL;
		if (any.rest == NULL || any.at == n)
			return false;
		p = any.rest;
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
