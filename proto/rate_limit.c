#include "proto/rate_limit.h"

#include <stddef.h>
#include <string.h>

#define NS_PER_S UINT64_C(1000000000)
#define BLANK	 " \t"

static const struct {
	const char *name;
	enum rate_limit_category category;
} categories[] = {
	{"profile_chunk", RATE_LIMIT_PROFILE_CHUNK},
	{"profile_duration", RATE_LIMIT_PROFILE_CHUNK},
	{"profile", RATE_LIMIT_PROFILE},
	{"transaction", RATE_LIMIT_TRANSACTION},
	{"span", RATE_LIMIT_SPAN},
};
#define CATEGORIES (sizeof(categories) / sizeof(categories[0]))

/* A part of a header; not NUL-terminated. */
struct span {
	const char *at;
	size_t len;
};

static struct span trim(struct span s)
{
	while (s.len > 0 && strchr(BLANK, s.at[0]) != NULL) {
		s.at++;
		s.len--;
	}
	while (s.len > 0 && strchr(BLANK, s.at[s.len - 1]) != NULL)
		s.len--;
	return s;
}

/* Removes the text up to the next c, or all of it, from *text, and returns it trimmed. */
static struct span next(struct span *text, char c)
{
	const char *hit = memchr(text->at, c, text->len);
	struct span s = *text;

	if (hit == NULL) {
		text->at += text->len;
		text->len = 0;
	} else {
		s.len = (size_t)(hit - text->at);
		text->len -= s.len + 1;
		text->at = hit + 1;
	}
	return trim(s);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/*
 * Parses digits with an optional fraction, rounded up and cut to RATE_LIMIT_MAX_S. strtod(3)
 * depends on the locale, and accepts "inf", "nan" and hexadecimal digits.
 */
static bool parse_seconds(struct span s, uint32_t *ret)
{
	bool digits = false;
	bool fraction = false;
	uint32_t n = 0;
	size_t i;

	for (i = 0; i < s.len && is_digit(s.at[i]); i++) {
		n = n * 10 + (uint32_t)(s.at[i] - '0');
		/* Keeps n small, so that 10 * n cannot overflow. */
		if (n > RATE_LIMIT_MAX_S)
			n = RATE_LIMIT_MAX_S + 1;
		digits = true;
	}
	if (i < s.len && s.at[i] == '.') {
		for (i++; i < s.len && is_digit(s.at[i]); i++) {
			fraction = fraction || s.at[i] != '0';
			digits = true;
		}
	}
	if (!digits || i != s.len)
		return false;
	if (fraction)
		n++;
	*ret = n < RATE_LIMIT_MAX_S ? n : RATE_LIMIT_MAX_S;
	return true;
}

void rate_limit_extend(struct rate_limit *r, enum rate_limit_category category, uint64_t until_ns)
{
	if (r->until_ns[category] < until_ns)
		r->until_ns[category] = until_ns;
}

static void limit_categories(struct rate_limit *r, struct span list, uint64_t until_ns)
{
	if (list.len == 0) {
		rate_limit_extend(r, RATE_LIMIT_ALL, until_ns);
		return;
	}
	while (list.len > 0) {
		struct span name = next(&list, ';');

		/* An empty name in a list matches no category. */
		for (size_t c = 0; c < CATEGORIES; c++) {
			if (strlen(categories[c].name) == name.len &&
			    memcmp(categories[c].name, name.at, name.len) == 0)
				rate_limit_extend(r, categories[c].category, until_ns);
		}
	}
}

/* Applies a header; returns whether it had a well-formed limit, of whatever category. */
static bool apply_limits(struct rate_limit *r, const char *text, uint64_t now_ns)
{
	struct span header = {text, strlen(text)};
	bool any = false;

	while (header.len > 0) {
		struct span limit = next(&header, ',');
		struct span seconds = next(&limit, ':');
		struct span list = next(&limit, ':');
		uint32_t n;

		/* Scope, reason and namespaces may follow, and are ignored. */
		if (!parse_seconds(seconds, &n))
			continue;
		limit_categories(r, list, now_ns + n * NS_PER_S);
		any = true;
	}
	return any;
}

/* Returns the length of the limit of a 429 that has no X-Sentry-Rate-Limits. */
static uint32_t retry_after_s(const struct rate_limit_answer *a, int64_t unix_s)
{
	const char *text = a->retry_after;
	uint32_t n;

	if (text != NULL && parse_seconds(trim((struct span){text, strlen(text)}), &n))
		return n;
	/* The date has passed: this clock or the server's is wrong. */
	if (a->retry_date_s <= unix_s)
		return RATE_LIMIT_DEFAULT_S;
	if (a->retry_date_s - unix_s > RATE_LIMIT_MAX_S)
		return RATE_LIMIT_MAX_S;
	return (uint32_t)(a->retry_date_s - unix_s);
}

void rate_limit_init(struct rate_limit *r)
{
	*r = (struct rate_limit){0};
}

void rate_limit_update(struct rate_limit *r, const struct rate_limit_answer *a, uint64_t now_ns,
		       int64_t unix_s)
{
	if (a->limits != NULL && apply_limits(r, a->limits, now_ns))
		return;
	if (a->status == 429)
		rate_limit_extend(r, RATE_LIMIT_ALL, now_ns + retry_after_s(a, unix_s) * NS_PER_S);
}

uint64_t rate_limit_until(const struct rate_limit *r, enum rate_limit_category category)
{
	uint64_t all = r->until_ns[RATE_LIMIT_ALL];
	uint64_t own = r->until_ns[category];

	return own > all ? own : all;
}

bool rate_limit_active(const struct rate_limit *r, enum rate_limit_category category,
		       uint64_t now_ns)
{
	return rate_limit_until(r, category) > now_ns;
}
