/*
 * Bars (merge.h) as points in time, for formats in which a sample lasts until the next sample of
 * its thread (json.c, self_profiling.c): a point at the start of each bar, and a point without a
 * stack at the end of a bar if no other bar starts there. For files of proto/export/ only.
 */
#ifndef PROTO_EXPORT_POINTS_H
#define PROTO_EXPORT_POINTS_H

#include "proto/export/merge.h"

struct export_point {
	uint64_t time_ns;
	uint32_t thread; /* an index in merge.threads */
	uint32_t node;	 /* PROFILE_NONE: no stack */
	enum profile_state state;
};

/*
 * Writes the points of a thread to ret, which has room for two points for each of its bars.
 * Returns the number of points.
 */
size_t export_points(const struct merge *m, uint32_t thread, struct export_point *ret);

/* Sorts points by time, then by thread. */
void export_sort_points(struct export_point *points, size_t n);

#endif
