/*
 * What an answer says about limits, in lines: the status, X-Sentry-Rate-Limits,
 * Retry-After. A line that is not there is a header that is not there.
 */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/util.h"
#include "proto/ratelimit.h"

/* libcurl takes no longer header. */
#define TEXT_BYTES_MAX (100u * 1024)

#define NOW_NS (1000 * NS_PER_SEC)
#define UNIX_S INT64_C(1800000000)

static void check_bounds(const struct ratelimit *before, const struct ratelimit *after)
{
	for (int i = 0; i < RATELIMIT_CATEGORY_N; i++) {
		enum ratelimit_category c = (enum ratelimit_category)i;
		uint64_t until = ratelimit_until(after, c);

		assert(until >= ratelimit_until(before, c));
		assert(until <= NOW_NS + RATELIMIT_MAX_S * NS_PER_SEC);
		assert(until >= ratelimit_until(after, RATELIMIT_ALL));
		assert(ratelimit_active(after, c, NOW_NS) == (until > NOW_NS));
	}
}

/* A list of limits says what its limits say one by one. */
static void check_one_by_one(const char *limits, const struct ratelimit *whole)
{
	char *copy = strdup(limits), *rest = copy;
	struct ratelimit parts;

	assert(copy != NULL);
	ratelimit_init(&parts);
	while (rest != NULL) {
		const struct ratelimit_answer one = {
			.status = 200,
			.limits = strsep(&rest, ","),
		};

		ratelimit_update(&parts, &one, NOW_NS, UNIX_S);
	}
	assert(memcmp(&parts, whole, sizeof(parts)) == 0);
	free(copy);
}

static void check_answer(const struct ratelimit_answer *a)
{
	/* A 429 of before, that is half over. */
	const struct ratelimit_answer bare = {.status = 429};
	struct ratelimit fresh, held, again;

	ratelimit_init(&fresh);
	held = fresh;
	check_bounds(&fresh, &held);
	ratelimit_update(&fresh, a, NOW_NS, UNIX_S);
	check_bounds(&held, &fresh);
	again = fresh;
	ratelimit_update(&again, a, NOW_NS, UNIX_S);
	assert(memcmp(&again, &fresh, sizeof(again)) == 0);

	ratelimit_update(&held, &bare, NOW_NS - 30 * NS_PER_SEC, UNIX_S - 30);
	again = held;
	ratelimit_update(&again, a, NOW_NS, UNIX_S);
	check_bounds(&held, &again);

	if (a->status != 429) {
		if (a->limits != NULL)
			check_one_by_one(a->limits, &fresh);
		else
			assert(ratelimit_until(&fresh, RATELIMIT_SPAN) == 0);
	} else if (a->limits == NULL && a->retry_after == NULL) {
		assert(ratelimit_until(&fresh, RATELIMIT_PROFILE_CHUNK) ==
		       NOW_NS + RATELIMIT_DEFAULT_S * NS_PER_SEC);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ratelimit_answer a = {0};
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
