#include "daemon/common/log_limit.h"

#include <stdio.h>
#include <string.h>

static bool is_over(const struct log_limit_kind *k, uint64_t now_ns)
{
	return now_ns - k->since_ns >= LOG_LIMIT_WINDOW_NS;
}

/*
 * Returns the slot of format, or else a free slot, or else the slot of a kind whose window is over
 * and which has no suppressed lines. Returns NULL if there is none of these.
 */
static struct log_limit_kind *slot_of(struct log_limit *l, const char *format, uint64_t now_ns)
{
	struct log_limit_kind *free_one = NULL;

	for (size_t i = 0; i < LOG_LIMIT_KINDS; i++) {
		struct log_limit_kind *k = &l->kinds[i];

		if (k->format == format)
			return k;
		if (free_one == NULL &&
		    (k->format == NULL || (is_over(k, now_ns) && k->lines <= k->lines_max)))
			free_one = k;
	}
	if (free_one != NULL)
		free_one->format = NULL;
	return free_one;
}

bool log_limit_take(struct log_limit *l, const char *level, const char *format, uint64_t lines_max,
		    const char *text, uint64_t now_ns)
{
	struct log_limit_kind *k = slot_of(l, format, now_ns);

	if (k == NULL)
		return true;
	if (k->format == NULL || (is_over(k, now_ns) && k->lines <= k->lines_max)) {
		k->format = format;
		k->since_ns = now_ns;
		k->lines_max = lines_max;
		k->lines = 0;
	}
	k->lines++;
	if (k->lines <= k->lines_max)
		return true;
	/* A smaller digit is a graver level. */
	if (k->lines == k->lines_max + 1 || level[0] <= k->level[0]) {
		k->level = level;
		(void)snprintf(k->last, sizeof(k->last), "%s", text);
	}
	return false;
}

bool log_limit_next_suppressed(struct log_limit *l, uint64_t now_ns,
			       struct log_limit_suppressed *ret)
{
	for (size_t i = 0; i < LOG_LIMIT_KINDS; i++) {
		struct log_limit_kind *k = &l->kinds[i];

		if (k->format == NULL || !is_over(k, now_ns) || k->lines <= k->lines_max)
			continue;
		ret->level = k->level;
		ret->lines = k->lines - k->lines_max;
		memcpy(ret->last, k->last, sizeof(ret->last));
		k->format = NULL;
		return true;
	}
	return false;
}
