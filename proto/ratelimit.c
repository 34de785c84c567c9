#include "proto/ratelimit.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define NS_PER_S UINT64_C(1000000000)
#define BLANK	 " \t"

static const char *const category_names[RATELIMIT_CATEGORY_N] = {
	[RATELIMIT_ALL] = "",
	[RATELIMIT_PROFILE_CHUNK] = "profile_chunk",
	[RATELIMIT_PROFILE] = "profile",
	[RATELIMIT_TRANSACTION] = "transaction",
	[RATELIMIT_SPAN] = "span",
};

/* A piece of a header; not NUL-terminated. */
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

/* Takes what stands before the next c, or all of it, off *rest; trimmed. */
static struct span next(struct span *rest, char c)
{
	const char *hit = memchr(rest->at, c, rest->len);
	struct span s = *rest;

	if (hit == NULL) {
		rest->at += rest->len;
		rest->len = 0;
	} else {
		s.len = (size_t)(hit - rest->at);
		rest->len -= s.len + 1;
		rest->at = hit + 1;
	}
	return trim(s);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/*
 * Digits, perhaps with a fraction, rounded up and cut to RATELIMIT_MAX_S.
 * strtod would ask the locale, and knows "inf", "nan" and hex.
 */
static bool parse_seconds(struct span s, uint32_t *ret)
{
	bool digits = false;
	bool fraction = false;
	uint32_t n = 0;
	size_t i;

	for (i = 0; i < s.len && is_digit(s.at[i]); i++) {
		n = n * 10 + (uint32_t)(s.at[i] - '0');
		/* One more than the maximum, so that 10 n cannot overflow. */
		if (n > RATELIMIT_MAX_S)
			n = RATELIMIT_MAX_S + 1;
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
	*ret = n < RATELIMIT_MAX_S ? n : RATELIMIT_MAX_S;
	return true;
}

void ratelimit_extend(struct ratelimit *r, enum ratelimit_category category,
		      uint64_t until_ns)
{
	if (r->until_ns[category] < until_ns)
		r->until_ns[category] = until_ns;
}

static void limit_categories(struct ratelimit *r, struct span list,
			     uint64_t until_ns)
{
	if (list.len == 0) {
		ratelimit_extend(r, RATELIMIT_ALL, until_ns);
		return;
	}
	while (list.len > 0) {
		struct span name = next(&list, ';');

		/* An empty name among others is none. */
		for (int c = RATELIMIT_ALL + 1; c < RATELIMIT_CATEGORY_N; c++) {
			if (strlen(category_names[c]) == name.len &&
			    memcmp(category_names[c], name.at, name.len) == 0)
				ratelimit_extend(r, (enum ratelimit_category)c,
						 until_ns);
		}
	}
}

/* True if there was a well-formed limit, of whatever category. */
static bool take_limits(struct ratelimit *r, const char *text, uint64_t now_ns)
{
	struct span rest = {text, strlen(text)};
	bool any = false;

	while (rest.len > 0) {
		struct span limit = next(&rest, ',');
		struct span seconds = next(&limit, ':');
		struct span categories = next(&limit, ':');
		uint32_t n;

		/* Scope, reason and namespaces, which may follow, say why. */
		if (!parse_seconds(seconds, &n))
			continue;
		limit_categories(r, categories, now_ns + n * NS_PER_S);
		any = true;
	}
	return any;
}

static bool parse_month(const char name[static 4], int *ret)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

	for (int i = 0; i < 12; i++) {
		if (strncmp(months + 3 * i, name, 3) == 0) {
			*ret = i;
			return true;
		}
	}
	return false;
}

/* RFC 9110, 5.6.7: a two-digit year is at most 50 years ahead. */
static int full_year(int two_digits, int64_t unix_s)
{
	time_t now = (time_t)unix_s;
	struct tm tm;
	int year;

	if (gmtime_r(&now, &tm) == NULL)
		return 2000 + two_digits;
	year = (tm.tm_year + 1900) / 100 * 100 + two_digits;
	return year > tm.tm_year + 1900 + 50 ? year - 100 : year;
}

/*
 * RFC 9110, 5.6.7, in its three forms:
 *     Sun, 06 Nov 1994 08:49:37 GMT
 *     Sunday, 06-Nov-94 08:49:37 GMT
 *     Sun Nov  6 08:49:37 1994
 * Not strptime, which asks the locale for the names. The full year goes to
 * tm_year. Returns how far it read, 0 if it is no date.
 */
static size_t scan_date(const char *text, int64_t unix_s, struct tm *tm,
			char month[static 4])
{
	int end = 0;

	if (sscanf(text, "%*3[A-Za-z], %2d %3[A-Za-z] %4d %2d:%2d:%2d GMT%n",
		   &tm->tm_mday, month, &tm->tm_year, &tm->tm_hour, &tm->tm_min,
		   &tm->tm_sec, &end) == 6 &&
	    end > 0)
		return (size_t)end;
	if (sscanf(text, "%*9[A-Za-z], %2d-%3[A-Za-z]-%2d %2d:%2d:%2d GMT%n",
		   &tm->tm_mday, month, &tm->tm_year, &tm->tm_hour, &tm->tm_min,
		   &tm->tm_sec, &end) == 6 &&
	    end > 0) {
		tm->tm_year = full_year(tm->tm_year, unix_s);
		return (size_t)end;
	}
	if (sscanf(text, "%*3[A-Za-z] %3[A-Za-z] %2d %2d:%2d:%2d %4d%n", month,
		   &tm->tm_mday, &tm->tm_hour, &tm->tm_min, &tm->tm_sec,
		   &tm->tm_year, &end) == 6)
		return (size_t)end;
	return 0;
}

static bool within(int n, int min, int max)
{
	return n >= min && n <= max;
}

static bool parse_date(const char *text, int64_t unix_s, int64_t *ret)
{
	struct tm tm = {.tm_isdst = 0};
	char month[4] = "";
	size_t end = scan_date(text, unix_s, &tm, month);

	if (end == 0 || text[end + strspn(text + end, BLANK)] != '\0' ||
	    !parse_month(month, &tm.tm_mon))
		return false;
	/* 60: a leap second. */
	if (!within(tm.tm_mday, 1, 31) || !within(tm.tm_year, 1970, 9999) ||
	    !within(tm.tm_hour, 0, 23) || !within(tm.tm_min, 0, 59) ||
	    !within(tm.tm_sec, 0, 60))
		return false;
	tm.tm_year -= 1900;
	*ret = (int64_t)timegm(&tm);
	return true;
}

/* How long a 429 without limits of its own holds. */
static uint32_t parse_retry_after(const char *text, int64_t unix_s)
{
	uint32_t n;
	int64_t date;

	if (text == NULL)
		return RATELIMIT_DEFAULT_S;
	if (parse_seconds(trim((struct span){text, strlen(text)}), &n))
		return n;
	/* A date that has passed: our clock or the server's is wrong. */
	if (!parse_date(text + strspn(text, BLANK), unix_s, &date) ||
	    date <= unix_s)
		return RATELIMIT_DEFAULT_S;
	if (date - unix_s > RATELIMIT_MAX_S)
		return RATELIMIT_MAX_S;
	return (uint32_t)(date - unix_s);
}

void ratelimit_init(struct ratelimit *r)
{
	*r = (struct ratelimit){0};
}

void ratelimit_update(struct ratelimit *r, const struct ratelimit_answer *a,
		      uint64_t now_ns, int64_t unix_s)
{
	if (a->limits != NULL && take_limits(r, a->limits, now_ns))
		return;
	if (a->status == 429)
		ratelimit_extend(
			r, RATELIMIT_ALL,
			now_ns + parse_retry_after(a->retry_after, unix_s) *
					 NS_PER_S);
}

uint64_t ratelimit_until(const struct ratelimit *r,
			 enum ratelimit_category category)
{
	uint64_t all = r->until_ns[RATELIMIT_ALL];
	uint64_t own = r->until_ns[category];

	return own > all ? own : all;
}

bool ratelimit_active(const struct ratelimit *r,
		      enum ratelimit_category category, uint64_t now_ns)
{
	return ratelimit_until(r, category) > now_ns;
}
