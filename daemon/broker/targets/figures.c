#include "daemon/broker/targets/figures.h"

#include <string.h>

#include "daemon/broker/state/counts.h"
#include "daemon/broker/targets/instance.h"

void figures_capture(const struct targets *ts, const struct target *t, struct capture_counters *ret)
{
	*ret = t->past;
	/* The counters of a dead capture were added to past when it died. */
	if (t->dead_ns == 0 && t->attached_once && ts->children->heartbeat != NULL)
		counters_add(ret, &ts->children->heartbeat->slots[t->slot]);
}

void figures_of_target(const struct targets *ts, const struct target *t,
		       struct instance_figures *ret)
{
	memset(ret, 0, sizeof(*ret));
	figures_capture(ts, t, &ret->capture);
	ret->missed_no_capture = t->missed_no_capture;
	ret->unwind = t->unwind_past;
	counts_add(&ret->unwind, &t->unwind_now, sizeof(ret->unwind));
	ret->lowest_hz = t->governed.lowest_hz;
	ret->lowered_ns = t->governed.lowered_ns;
	ret->exceeded_ns = t->governed.exceeded_ns;
}

void figures_add(struct instance_figures *sum, const struct instance_figures *more)
{
	counters_add(&sum->capture, &more->capture);
	sum->missed_no_capture += more->missed_no_capture;
	counts_add(&sum->unwind, &more->unwind, sizeof(sum->unwind));
	counts_add(&sum->chunks, &more->chunks, sizeof(sum->chunks));
	sum->payload_bytes += more->payload_bytes;
	if (sum->lowest_hz == 0 || (more->lowest_hz != 0 && more->lowest_hz < sum->lowest_hz))
		sum->lowest_hz = more->lowest_hz;
	sum->lowered_ns = max_u64(sum->lowered_ns, more->lowered_ns);
	sum->exceeded_ns = max_u64(sum->exceeded_ns, more->exceeded_ns);
}

void figures_of_instance(const struct targets *ts, const struct instance *i,
			 struct instance_figures *ret)
{
	const struct target *const runs[] = {i->target, i->kept};
	struct instance_figures one;

	*ret = i->past;
	counts_add(&ret->chunks, &i->delivery.chunks, sizeof(ret->chunks));
	ret->payload_bytes += i->delivery.payload_bytes;
	for (size_t k = 0; k < array_size(runs); k++) {
		if (runs[k] == NULL)
			continue;
		figures_of_target(ts, runs[k], &one);
		figures_add(ret, &one);
	}
}

void figures_of_all(const struct targets *ts, struct instance_figures *ret)
{
	struct instance_figures one;

	*ret = ts->gone;
	for (size_t i = 0; i < ts->n_instances; i++) {
		figures_of_instance(ts, ts->instances[i], &one);
		figures_add(ret, &one);
	}
}
