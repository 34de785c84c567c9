#include "proto/export/merge_extra.h"

#include <stdbool.h>
#include <stdlib.h>

#include "proto/profile.h"

static double time_of(const json_t *point)
{
	return json_number_value(json_object_get(point, "timestamp"));
}

static int compare_points(const void *a, const void *b)
{
	const double x = time_of(*(json_t *const *)a);
	const double y = time_of(*(json_t *const *)b);

	return x < y ? -1 : x > y;
}

static bool is_sorted(const json_t *values)
{
	for (size_t i = 1; i < json_array_size(values); i++)
		if (time_of(json_array_get(values, i)) <= time_of(json_array_get(values, i - 1)))
			return false;
	return true;
}

/*
 * Sorts the points by time, since chunks may be added in any order. Of points with one time, one
 * stays: parts of a profile in the format json have all points of the whole.
 */
static int sort_points(json_t *values)
{
	const size_t n = json_array_size(values);
	json_t **points;
	int r;

	if (is_sorted(values))
		return 0;
	points = calloc(n, sizeof(*points));
	if (points == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		points[i] = json_incref(json_array_get(values, i));
	qsort(points, n, sizeof(*points), compare_points);
	r = json_array_clear(values) < 0 ? -ENOMEM : 0;
	for (size_t i = 0; i < n; i++) {
		if ((i == 0 || time_of(points[i]) > time_of(points[i - 1])) &&
		    json_array_append(values, points[i]) < 0)
			r = -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		json_decref(points[i]);
	free(points);
	return r;
}

static int add_points(json_t *values, const json_t *more)
{
	json_t *copy;
	int r = 0;

	if (!json_is_array(values) || !json_is_array(more))
		return 0;
	copy = json_deep_copy(more);
	if (copy == NULL || json_array_extend(values, copy) < 0)
		r = -ENOMEM;
	json_decref(copy);
	return r < 0 ? r : sort_points(values);
}

/* Adds the points of a payload to the curves; copies curves that are new. */
static int add_curves(json_t *extra, json_t *payload)
{
	json_t *ours = json_object_get(extra, "measurements"), *curve;
	json_t *theirs = json_object_get(payload, "measurements");
	const char *name;
	int r = 0;

	if (!json_is_object(ours) && json_is_object(theirs)) {
		ours = json_object();
		if (json_object_set_new(extra, "measurements", ours) < 0)
			return -ENOMEM;
	}
	json_object_foreach(theirs, name, curve)
	{
		json_t *known = json_object_get(ours, name);

		if (known == NULL)
			r = json_object_set_new(ours, name, json_deep_copy(curve)) < 0 ? -ENOMEM
										       : 0;
		else
			r = add_points(json_object_get(known, "values"),
				       json_object_get(curve, "values"));
		if (r < 0)
			return r;
	}
	return 0;
}

int merge_extra_add(json_t **extra, json_t *payload)
{
	json_t *shallow;

	if (*extra != NULL) {
		/* Stays only if all payloads have it. */
		if (!json_is_true(json_object_get(payload, PROFILE_READY_KNOWN)))
			(void)json_object_del(*extra, PROFILE_READY_KNOWN);
		if (json_is_true(json_object_get(payload, PROFILE_JOINED_SAMPLES)) &&
		    json_object_set_new(*extra, PROFILE_JOINED_SAMPLES, json_true()) < 0)
			return -ENOMEM;
		return add_curves(*extra, payload);
	}
	shallow = json_copy(payload);
	if (shallow == NULL)
		return -ENOMEM;
	(void)json_object_del(shallow, "profile");
	(void)json_object_del(shallow, "debug_meta");
	(void)json_object_del(shallow, PROFILE_COMMAND_LINE);
	*extra = json_deep_copy(shallow);
	json_decref(shallow);
	return *extra == NULL ? -ENOMEM : 0;
}
