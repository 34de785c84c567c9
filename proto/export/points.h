/*
 * Samples of formats in which a sample lasts until the next one of its thread:
 * a point at the start of each bar, and one without a stack where a bar ends
 * and no other begins. Inside proto/export/.
 */
#ifndef PROTO_EXPORT_POINTS_H
#define PROTO_EXPORT_POINTS_H

#include "proto/export/merge.h"

struct export_point {
	uint64_t time_ns;
	uint32_t thread;
	uint32_t node; /* PROFILE_NONE: no stack */
	bool is_waiting;
};

/* ret has room for two points for each of the thread's bars. Returns how many
 * there are. */
size_t export_points(const struct merge *m, uint32_t thread, struct export_point *ret);

/* By time, then thread. */
void export_sort_points(struct export_point *points, size_t n);

#endif
