/*
 * Checks and cleans UTF-8 text (RFC 3629). Each text s ends with a NUL. All functions are inline,
 * because lib/client uses them, and lib/client is linked into other programs.
 */
#ifndef LIB_BASE_UTF8_H
#define LIB_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Returns whether c is within [low, high]. */
static inline bool utf8_is_within(char c, uint8_t low, uint8_t high)
{
	return (uint8_t)c >= low && (uint8_t)c <= high;
}

/*
 * Returns the length in bytes, 1 to 4, of the UTF-8 sequence at the start of s; 0 if that is not
 * valid. Surrogates and overlong forms are not valid. s must not be empty. Source: the table in RFC
 * 3629, section 4.
 */
static inline size_t utf8_length(const char *s)
{
	uint8_t first = (uint8_t)s[0];
	/* The range of the second byte excludes overlong forms and surrogates. */
	uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
	uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
	size_t n;

	if (first < 0x80)
		return 1;
	if (first < 0xc2 || first > 0xf4 || !utf8_is_within(s[1], low, high))
		return 0;
	n = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
	for (size_t i = 2; i < n; i++)
		if (!utf8_is_within(s[i], 0x80, 0xbf))
			return 0;
	return n;
}

/* Returns the code point of the sequence at s. length: its bytes, as utf8_length() returns them. */
static inline uint32_t utf8_code_point(const char *s, size_t length)
{
	/* Each byte after the first has 6 bits; the first has the rest. */
	uint32_t c = length == 1 ? (uint8_t)s[0] : (uint8_t)s[0] & (0x7fu >> length);

	for (size_t i = 1; i < length; i++)
		c = c << 6 | ((uint8_t)s[i] & 0x3f);
	return c;
}

/* Returns whether s, valid UTF-8, starts with a control character: C0, DEL or C1. */
static inline bool utf8_is_control(const char *s)
{
	uint8_t first = (uint8_t)s[0];

	return first < 0x20 || first == 0x7f || (first == 0xc2 && (uint8_t)s[1] < 0xa0);
}

/*
 * Returns whether s, valid UTF-8, starts with a character that a terminal obeys, or that changes
 * the order or the lines of the text around it: a control character; U+2028 and U+2029, which
 * separate lines; or one of Unicode's marks for the direction of text (U+061C, U+200E, U+200F,
 * U+202A to U+202E, U+2066 to U+2069).
 */
static inline bool utf8_is_unsafe(const char *s)
{
	const uint32_t c = utf8_code_point(s, utf8_length(s));

	return utf8_is_control(s) || c == 0x61c || c == 0x200e || c == 0x200f ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

/*
 * Copies s, with its NUL, to ret. Each invalid byte, and each control character unless keep_control
 * is set, becomes U+FFFD. size: bytes of ret, at least 1. A copy that does not fit is cut between
 * two characters.
 */
static inline void utf8_clean(const char *s, bool keep_control, char *ret, size_t size)
{
	size_t used = 0;

	while (*s != '\0') {
		size_t n = utf8_length(s);
		const char *from = s;

		s += n > 0 ? n : 1;
		if (n == 0 || (!keep_control && utf8_is_control(from))) {
			from = UTF8_REPLACEMENT;
			n = strlen(UTF8_REPLACEMENT);
		}
		if (n >= size - used)
			break;
		memcpy(ret + used, from, n);
		used += n;
	}
	ret[used] = '\0';
}

#endif
