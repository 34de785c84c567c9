#include "daemon/pem.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define BEGIN  "-----BEGIN "
#define END    "-----END "
#define DASHES "-----"

/* The first bytes of a DER value: a tag, and up to five of its length. */
#define HEADER_MAX 6
#define SEQUENCE   0x30

struct line {
	const char *at;
	size_t n;
};

/* False at the end. */
static bool next_line(const char **at, const char *end, struct line *ret)
{
	const char *newline;

	if (*at == end)
		return false;
	newline = memchr(*at, '\n', (size_t)(end - *at));
	ret->at = *at;
	ret->n = (size_t)((newline == NULL ? end : newline) - *at);
	*at = newline == NULL ? end : newline + 1;
	while (ret->n > 0 && strchr(" \t\r", ret->at[ret->n - 1]) != NULL &&
	       ret->at[ret->n - 1] != '\0')
		ret->n--;
	return true;
}

/* "-----BEGIN X-----": X. */
static bool is_mark(const struct line *l, const char *mark, struct line *ret)
{
	const size_t before = strlen(mark), after = strlen(DASHES);

	if (l->n <= before + after || memcmp(l->at, mark, before) != 0 ||
	    memcmp(l->at + l->n - after, DASHES, after) != 0)
		return false;
	ret->at = l->at + before;
	ret->n = l->n - before - after;
	return true;
}

static bool ends_with(const struct line *l, const char *text)
{
	const size_t n = strlen(text);

	return l->n >= n && memcmp(l->at + l->n - n, text, n) == 0;
}

/* What is written in base64, so far. */
struct decoder {
	uint32_t bits;
	size_t n_digits, n_pads, n_bytes;
	uint8_t first[HEADER_MAX];
};

static int digit_of(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c == '\0' ? NULL : strchr(digits, c);

	return at == NULL ? -1 : (int)(at - digits);
}

static void put_byte(struct decoder *d, uint32_t byte)
{
	if (d->n_bytes < HEADER_MAX)
		d->first[d->n_bytes] = (uint8_t)byte;
	d->n_bytes++;
}

/* False: that is no base64. */
static bool decode(struct decoder *d, const struct line *l)
{
	for (size_t i = 0; i < l->n; i++) {
		const int digit = digit_of(l->at[i]);

		if (l->at[i] == ' ' || l->at[i] == '\t')
			continue;
		if (l->at[i] == '=') {
			d->n_pads++;
			continue;
		}
		if (digit < 0 || d->n_pads > 0)
			return false;
		d->bits = d->bits << 6 | (uint32_t)digit;
		d->n_digits++;
		if (d->n_digits % 4 != 1)
			put_byte(d,
				 d->bits >> (6 - 2 * ((d->n_digits - 1) % 4)) &
					 0xff);
	}
	return true;
}

/* X.690, 8.1.3: it says itself how long it is. */
static bool is_whole(const struct decoder *d)
{
	size_t length, header = 2;

	if ((d->n_digits + d->n_pads) % 4 != 0 || d->n_bytes < HEADER_MAX ||
	    d->first[0] != SEQUENCE)
		return false;
	length = d->first[1];
	if (length >= 0x80) {
		const size_t more = length & 0x7f;

		if (more == 0 || more > HEADER_MAX - header)
			return false;
		length = 0;
		for (size_t i = 0; i < more; i++)
			length = length << 8 | d->first[header + i];
		header += more;
	}
	/* OpenSSL's TRUSTED CERTIFICATE has something behind it. */
	return header + length <= d->n_bytes;
}

/* From the line after BEGIN to END, which has to have the same label. */
static enum pem_result check_block(const char **at, const char *end,
				   const struct line *label)
{
	struct decoder d = {.bits = 0};
	bool is_encrypted = ends_with(label, "ENCRYPTED PRIVATE KEY");
	struct line l, other;

	while (next_line(at, end, &l)) {
		if (is_mark(&l, END, &other)) {
			if (other.n != label->n ||
			    memcmp(other.at, label->at, other.n) != 0)
				return PEM_BROKEN;
			if (is_encrypted)
				return PEM_ENCRYPTED;
			return is_whole(&d) ? PEM_OK : PEM_BROKEN;
		}
		/* A header of RFC 1421: OpenSSL has them for old keys. */
		if (memchr(l.at, ':', l.n) != NULL) {
			is_encrypted |= ends_with(&l, "ENCRYPTED");
			continue;
		}
		if (!decode(&d, &l) && !is_encrypted)
			return PEM_BROKEN;
	}
	return PEM_BROKEN;
}

enum pem_result pem_check(const char *text, size_t n, const char *kind)
{
	const char *at = text, *end = text + n;
	enum pem_result result = PEM_NONE;
	struct line l, label;

	while (next_line(&at, end, &l)) {
		if (!is_mark(&l, BEGIN, &label) || !ends_with(&label, kind))
			continue;
		result = check_block(&at, end, &label);
		if (result != PEM_OK)
			return result;
	}
	return result;
}
