#include "proto/export/points.h"

#include <stdlib.h>

#include "proto/export/export.h"

size_t export_points(const struct merge *m, uint32_t thread, struct export_point *ret)
{
	const struct merge_thread *t = &m->threads[thread];
	size_t n = 0;

	for (size_t i = 0; i < t->n_bars; i++) {
		const struct merge_bar *bar = &m->bars[t->first_bar + i];

		ret[n++] = (struct export_point){bar->start_ns, thread, bar->node, bar->state};
		if (i + 1 == t->n_bars || export_end(bar) < bar[1].start_ns)
			ret[n++] = (struct export_point){export_end(bar), thread, PROFILE_NONE,
							 bar->state};
	}
	return n;
}

static int compare(const void *a, const void *b)
{
	const struct export_point *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	/* A bar without duration has two points at one time: its end is the second. */
	return (x->node == PROFILE_NONE) - (y->node == PROFILE_NONE);
}

void export_sort_points(struct export_point *points, size_t n)
{
	if (n > 1)
		qsort(points, n, sizeof(*points), compare);
}
