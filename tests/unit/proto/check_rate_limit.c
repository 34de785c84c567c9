#include "proto/rate_limit.h"

#include <stddef.h>
#include <string.h>

#include "tests/unit/random.h"
#include "tests/unit/suite.h"

#define S   UINT64_C(1000000000)
#define NOW (1000 * S)
/* Sun, 06 Nov 1994 08:49:37 GMT */
#define WALL 784111777

/* The limits in seconds from NOW on chunks, profiles, transactions and spans. */
static const struct {
	int status;
	const char *limits;
	const char *retry_after;
	uint32_t all;
	uint32_t chunk;
	uint32_t transaction;
	uint32_t span;
} cases[] = {
	{200, NULL, NULL, 0, 0, 0, 0},
	{500, NULL, "30", 0, 0, 0, 0},
	{429, NULL, NULL, 60, 60, 60, 60},

	/* The grammar, with any status. */
	{200, "60:profile_chunk:organization:quota:", NULL, 0, 60, 0, 0},
	{200, "60:profile_chunk", NULL, 0, 60, 0, 0},
	{200, "60:profile_duration:organization", NULL, 0, 60, 0, 0},
	{200, "60:profile_chunk:key, 90:profile_duration:key", NULL, 0, 90, 0, 0},
	{200, "60:profile_chunk_ui;profile_duration_ui:key", NULL, 0, 0, 0, 0},
	{200, "60:transaction;profile_chunk;span:key", NULL, 0, 60, 60, 60},
	{429, "60:profile_chunk:key, 2700:transaction:org", NULL, 0, 60, 2700, 0},
	{429, "60::organization", NULL, 60, 60, 60, 60},
	{429, "60:", NULL, 60, 60, 60, 60},
	{429, "60", NULL, 60, 60, 60, 60},
	{429, "10::org, 60:span:org", NULL, 10, 10, 10, 60},
	{200, " 60 : profile_chunk ; span : key ", NULL, 0, 60, 0, 60},
	{200, "60:metric_bucket:organization:quota:custom", NULL, 0, 0, 0, 0},
	{200, "5:profile_chunk,60:profile_chunk,7:profile_chunk", NULL, 0, 60, 0, 0},
	{200, "0:profile_chunk", NULL, 0, 0, 0, 0},
	{200, "60:;:key", NULL, 0, 0, 0, 0},

	/* Unknown categories. */
	{429, "60:error;attachment:key", NULL, 0, 0, 0, 0},
	{429, "60:bogus;profile_chunk:key", NULL, 0, 60, 0, 0},
	{200, "60:profile_chunks;rofile_chunk;PROFILE_CHUNK", NULL, 0, 0, 0, 0},
	/* Retry-After is ignored if there is a well-formed limit. */
	{429, "60:error:key", "30", 0, 0, 0, 0},

	/* Seconds. */
	{200, "1.0:span", NULL, 0, 0, 0, 1},
	{200, "1.000001:span", NULL, 0, 0, 0, 2},
	{200, "0.5:span", NULL, 0, 0, 0, 1},
	{200, ".5:span", NULL, 0, 0, 0, 1},
	{200, "5.:span", NULL, 0, 0, 0, 5},
	{200, "86400:span", NULL, 0, 0, 0, 86400},
	{200, "86399.5:span", NULL, 0, 0, 0, 86400},
	{200, "86400.5:span", NULL, 0, 0, 0, 86400},
	{200, "86401:span", NULL, 0, 0, 0, 86400},
	{200, "18446744073709551617:span", NULL, 0, 0, 0, 86400},
	{200, "4294967297:span", NULL, 0, 0, 0, 86400},

	/* Malformed. */
	{200,
	 "-60:span,x:span,1e3:span,0x10:span,inf:span,nan:span,:span,"
	 "1.2.3:span,.:span,6 0:span",
	 NULL, 0, 0, 0, 0},
	{200, "x:span,7:span", NULL, 0, 0, 0, 7},
	{200, ",,;;::", NULL, 0, 0, 0, 0},
	{200, "", NULL, 0, 0, 0, 0},
	{429, "", "30", 30, 30, 30, 30},
	{429, "nonsense", "30", 30, 30, 30, 30},
	{429, "nonsense", NULL, 60, 60, 60, 60},

	/* Retry-After. */
	{429, NULL, "120", 120, 120, 120, 120},
	{429, NULL, " 120 ", 120, 120, 120, 120},
	{429, NULL, "1.2", 2, 2, 2, 2},
	{429, NULL, "0", 0, 0, 0, 0},
	{429, NULL, "999999999999", 86400, 86400, 86400, 86400},
	{429, NULL, "soon", 60, 60, 60, 60},
	{429, NULL, "-5", 60, 60, 60, 60},
	{429, NULL, "", 60, 60, 60, 60},
};

static uint64_t seconds_left(const struct rate_limit *r, enum rate_limit_category category)
{
	uint64_t until = rate_limit_until(r, category);

	if (until == 0)
		return 0;
	ck_assert_uint_ge(until, NOW);
	ck_assert_uint_eq((until - NOW) % S, 0);
	return (until - NOW) / S;
}

TESTS(an_answer_sets_the_limits_of_its_categories, array_size(cases))
{
	struct rate_limit_answer a = {cases[_i].status, cases[_i].limits, cases[_i].retry_after, 0};
	struct rate_limit r;

	rate_limit_init(&r);
	rate_limit_update(&r, &a, NOW, WALL);
	ck_assert_uint_eq(seconds_left(&r, RATE_LIMIT_ALL), cases[_i].all);
	ck_assert_uint_eq(seconds_left(&r, RATE_LIMIT_PROFILE_CHUNK), cases[_i].chunk);
	ck_assert_uint_eq(seconds_left(&r, RATE_LIMIT_TRANSACTION), cases[_i].transaction);
	ck_assert_uint_eq(seconds_left(&r, RATE_LIMIT_SPAN), cases[_i].span);
}

/* A date in the past is ignored. */
TEST(a_date_in_the_future_is_a_limit)
{
	static const struct {
		int64_t date_s;
		uint32_t seconds;
	} dates_s[] = {
		{WALL + 90, 90},
		{WALL + 86400, 86400},
		{WALL + 86401, 86400},
		{INT64_MAX, 86400},
		{WALL, 60},
		{1, 60},
		{0, 60},
	};

	for (size_t i = 0; i < sizeof(dates_s) / sizeof(dates_s[0]); i++) {
		struct rate_limit_answer a = {429, NULL, "a date", dates_s[i].date_s};
		struct rate_limit r;

		rate_limit_init(&r);
		rate_limit_update(&r, &a, NOW, WALL);
		ck_assert_uint_eq(seconds_left(&r, RATE_LIMIT_ALL), dates_s[i].seconds);
	}
}

TEST(the_later_deadline_stays)
{
	struct rate_limit_answer a = {200, "100:profile_chunk", NULL, 0};
	struct rate_limit r;

	rate_limit_init(&r);
	ck_assert(!rate_limit_active(&r, RATE_LIMIT_PROFILE_CHUNK, NOW));
	rate_limit_update(&r, &a, NOW, WALL);
	a.limits = "10:profile_chunk, 20::";
	rate_limit_update(&r, &a, NOW + S, WALL);
	ck_assert_uint_eq(seconds_left(&r, RATE_LIMIT_PROFILE_CHUNK), 100);
	ck_assert_uint_eq(seconds_left(&r, RATE_LIMIT_SPAN), 21);
	/* A later answer without limits does not end a limit. */
	a.limits = NULL;
	rate_limit_update(&r, &a, NOW + 2 * S, WALL);
	ck_assert(rate_limit_active(&r, RATE_LIMIT_PROFILE_CHUNK, NOW + 100 * S - 1));
	ck_assert(!rate_limit_active(&r, RATE_LIMIT_PROFILE_CHUNK, NOW + 100 * S));
}

TEST(changed_bytes_give_no_limit_above_the_maximum)
{
	static const char starts[][56] = {
		"60:profile_chunk;span:key:reason, 7.5::org",
		"120.5",
	};
	static const char bytes[] = ":;,. -+09\t\0aGN\377\r\n";
	uint64_t state = 1;
	size_t limited = 0;

	for (int round = 0; round < 50000; round++) {
		char text[sizeof(starts[0])];
		struct rate_limit_answer a = {.status = 429};
		struct rate_limit r;
		size_t len;

		memcpy(text, starts[random_next(&state) % 2], sizeof(text));
		len = strlen(text);
		for (uint64_t n = random_next(&state) % 6; n > 0; n--)
			text[random_next(&state) % len] =
				bytes[random_next(&state) % sizeof(bytes)];
		if (random_next(&state) % 2 == 0)
			a.limits = text;
		else
			a.retry_after = text;

		rate_limit_init(&r);
		rate_limit_update(&r, &a, NOW, WALL);
		for (int c = 0; c < RATE_LIMIT_CATEGORY_N; c++) {
			uint64_t s = seconds_left(&r, (enum rate_limit_category)c);

			ck_assert_uint_le(s, RATE_LIMIT_MAX_S);
			limited += s != 0 && s != RATE_LIMIT_DEFAULT_S;
		}
	}
	ck_assert_uint_gt(limited, 1000);
}
