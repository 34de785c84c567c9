/*
 * Turns bars (merge.h) into points in time, for formats in which a sample lasts until the next
 * sample of its thread (firefox.c, json.c, self_profiling.c). A point is at the start of each bar.
 * A point without a stack is at the end of a bar if the thread's next bar does not start there. For
 * files of proto/export/ only.
 */
#ifndef PROTO_EXPORT_POINTS_H
#define PROTO_EXPORT_POINTS_H

#include "proto/export/merge.h"

struct export_point {
	uint64_t time_ns;	  /* Unix time */
	uint32_t thread;	  /* an index in merge.threads */
	uint32_t node;		  /* an index in merge.nodes; PROFILE_NONE: no stack */
	enum profile_state state; /* of the bar that starts, or ends, there */
};

/*
 * Writes the points of a thread, sorted by time, to ret, which has room for two points for each of
 * its bars. m has merge_options.is_ordered set, and merge_finish() was called. Returns the number
 * of points.
 */
size_t export_points(const struct merge *m, uint32_t thread, struct export_point *ret);

/* Sorts the points of several threads by time, then by thread. */
void export_sort_points(struct export_point *points, size_t n);

#endif
