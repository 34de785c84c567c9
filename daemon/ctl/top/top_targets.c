#include "daemon/ctl/top/top_targets.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct top_target *find(const struct top_targets *t, int32_t pid)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->v[i].pid == pid)
			return &t->v[i];
	return NULL;
}

/* Returns a number; 0 if it is missing, negative, or of another type. */
static uint64_t number_of(const json_t *target, const char *key)
{
	const json_int_t n = json_integer_value(json_object_get(target, key));

	return n < 0 ? 0 : (uint64_t)n;
}

static void text_of(const json_t *target, const char *key, char ret[TOP_TARGET_TEXT])
{
	const char *text = json_string_value(json_object_get(target, key));

	(void)snprintf(ret, TOP_TARGET_TEXT, "%s", text == NULL ? "-" : text);
}

/* Returns the rate per second. 0 if the counter went back: the target was restarted. */
static double rate_of(uint64_t before, uint64_t now, double seconds)
{
	return now < before || seconds <= 0 ? 0 : (double)(now - before) / seconds;
}

static void read_target(const json_t *target, const struct top_targets *before, double seconds,
			struct top_target *ret)
{
	const struct top_target *old;

	*ret = (struct top_target){
		.pid = (int32_t)number_of(target, "pid"),
		.has_figures = json_is_integer(json_object_get(target, "samples_taken")),
		.rate_hz = (uint32_t)number_of(target, "rate_hz"),
		.threads = (uint32_t)number_of(target, "threads"),
		.samples = number_of(target, "samples_taken"),
		.missed = number_of(target, "missed"),
		.bytes = number_of(target, "bytes_sent"),
		.pause_us = json_number_value(json_object_get(target, "pause_us_p99")),
	};
	text_of(target, "name", ret->name);
	text_of(target, "state", ret->state);
	old = find(before, ret->pid);
	if (old == NULL)
		return;
	ret->samples_per_s = rate_of(old->samples, ret->samples, seconds);
	ret->missed_per_s = rate_of(old->missed, ret->missed, seconds);
	ret->bytes_per_s = rate_of(old->bytes, ret->bytes, seconds);
}

int top_targets_take(struct top_targets *t, const char *json, size_t size, uint64_t now_ns,
		     enum top_target_order order)
{
	json_t *root = json_loadb(json, size, 0, NULL);
	const json_t *targets = json_object_get(root, "targets"), *target;
	const double seconds = t->at_ns == 0 ? 0 : (double)(now_ns - t->at_ns) / (double)NS_PER_SEC;
	struct top_targets next = {.at_ns = now_ns};
	size_t i;

	if (!json_is_array(targets)) {
		json_decref(root);
		return -EPROTO;
	}
	next.v = calloc(json_array_size(targets) + 1, sizeof(*next.v));
	if (next.v == NULL) {
		json_decref(root);
		return -ENOMEM;
	}
	json_array_foreach(targets, i, target) read_target(target, t, seconds, &next.v[next.n++]);
	json_decref(root);
	free(t->v);
	*t = next;
	top_targets_sort(t, order);
	return 0;
}

static int largest_first(double x, double y)
{
	return x > y ? -1 : x < y;
}

static int compare(const void *a, const void *b, void *ctx)
{
	const struct top_target *x = a, *y = b;
	const enum top_target_order *order = ctx;
	int r = 0;

	switch (*order) {
	case TOP_BY_SAMPLES:
		r = largest_first(x->samples_per_s, y->samples_per_s);
		break;
	case TOP_BY_PAUSE:
		r = largest_first(x->pause_us, y->pause_us);
		break;
	case TOP_BY_BYTES:
		r = largest_first(x->bytes_per_s, y->bytes_per_s);
		break;
	case TOP_BY_NAME:
		break;
	}
	if (r == 0)
		r = strcmp(x->name, y->name);
	return r != 0 ? r : (x->pid > y->pid) - (x->pid < y->pid);
}

void top_targets_sort(struct top_targets *t, enum top_target_order order)
{
	if (t->n > 0)
		qsort_r(t->v, t->n, sizeof(t->v[0]), compare, &order);
}

void top_targets_fini(struct top_targets *t)
{
	free(t->v);
	*t = (struct top_targets){0};
}
