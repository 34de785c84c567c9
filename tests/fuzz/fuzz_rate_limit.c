/*
 * What an answer says about limits, in lines: the status, X-Sentry-Rate-Limits,
 * Retry-After. A line that is not there is a header that is not there.
 */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/util.h"
#include "proto/rate_limit.h"

/* libcurl takes no longer header. */
#define TEXT_BYTES_MAX (100u * 1024)

#define NOW_NS (1000 * NS_PER_SEC)
#define UNIX_S INT64_C(1800000000)

static void check_bounds(const struct rate_limit *before, const struct rate_limit *after)
{
	for (int i = 0; i < RATE_LIMIT_CATEGORY_N; i++) {
		enum rate_limit_category c = (enum rate_limit_category)i;
		uint64_t until = rate_limit_until(after, c);

		assert(until >= rate_limit_until(before, c));
		assert(until <= NOW_NS + RATE_LIMIT_MAX_S * NS_PER_SEC);
		assert(until >= rate_limit_until(after, RATE_LIMIT_ALL));
		assert(rate_limit_active(after, c, NOW_NS) == (until > NOW_NS));
	}
}

/* A list of limits says what its limits say one by one. */
static void check_one_by_one(const char *limits, const struct rate_limit *whole)
{
	char *copy = strdup(limits), *rest = copy;
	struct rate_limit modules;

	assert(copy != NULL);
	rate_limit_init(&modules);
	while (rest != NULL) {
		const struct rate_limit_answer one = {
			.status = 200,
			.limits = strsep(&rest, ","),
		};

		rate_limit_update(&modules, &one, NOW_NS, UNIX_S);
	}
	assert(memcmp(&modules, whole, sizeof(modules)) == 0);
	free(copy);
}

static void check_answer(const struct rate_limit_answer *a)
{
	/* A 429 of before, that is half over. */
	const struct rate_limit_answer bare = {.status = 429};
	struct rate_limit fresh, held, again;

	rate_limit_init(&fresh);
	held = fresh;
	check_bounds(&fresh, &held);
	rate_limit_update(&fresh, a, NOW_NS, UNIX_S);
	check_bounds(&held, &fresh);
	again = fresh;
	rate_limit_update(&again, a, NOW_NS, UNIX_S);
	assert(memcmp(&again, &fresh, sizeof(again)) == 0);

	rate_limit_update(&held, &bare, NOW_NS - 30 * NS_PER_SEC, UNIX_S - 30);
	again = held;
	rate_limit_update(&again, a, NOW_NS, UNIX_S);
	check_bounds(&held, &again);

	if (a->status != 429) {
		if (a->limits != NULL)
			check_one_by_one(a->limits, &fresh);
		else
			assert(rate_limit_until(&fresh, RATE_LIMIT_SPAN) == 0);
	} else if (a->limits == NULL && a->retry_after == NULL) {
		assert(rate_limit_until(&fresh, RATE_LIMIT_PROFILE_CHUNK) ==
		       NOW_NS + RATE_LIMIT_DEFAULT_S * NS_PER_SEC);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rate_limit_answer a = {0};
	char *text, *rest, *status;

	if (size > TEXT_BYTES_MAX)
		return 0;
	text = malloc(size + 1);
	assert(text != NULL);
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	rest = text;
	status = strsep(&rest, "\n");
	a.status = strcmp(status, "429") == 0 ? 429 : 200;
	a.limits = strsep(&rest, "\n");
	a.retry_after = strsep(&rest, "\n");
	check_answer(&a);
	free(text);
	return 0;
}
