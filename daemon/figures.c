#include "daemon/figures.h"

#include <string.h>

#include "daemon/broker.h"

void figures_capture(const struct broker *b, const struct target *t,
		     struct capture_counters *ret)
{
	*ret = t->past;
	/* What died was added when it died. */
	if (t->dead_ns == 0 && t->attached_once && b->heartbeat != NULL)
		counters_add(ret, &b->heartbeat->slots[t->slot]);
}

void figures_of_target(const struct broker *b, const struct target *t,
		       struct instance_figures *ret)
{
	const struct msg_unwind_stats *past = &t->unwind_past;
	const struct msg_unwind_stats *now = &t->unwind_now;

	memset(ret, 0, sizeof(*ret));
	figures_capture(b, t, &ret->capture);
	ret->missed_no_capture = t->missed_no_capture;
	for (size_t e = 0; e < MSG_UNWIND_ENDS_MAX; e++)
		ret->ends[e] = past->ends[e] + now->ends[e];
	ret->frame_pointer = past->frame_pointer + now->frame_pointer;
	ret->without_lines = past->without_lines + now->without_lines;
	ret->unknown_releases = past->unknown_releases + now->unknown_releases;
	ret->unwind_cost_ns = past->cost_ns + now->cost_ns;
	ret->lowest_hz = t->governed.lowest_hz;
	ret->lowered_ns = t->governed.lowered_ns;
	ret->exceeded_ns = t->governed.exceeded_ns;
}

static void add_chunks(struct chunk_counts *sum,
		       const struct chunk_counts *more)
{
	sum->made += more->made;
	sum->written += more->written;
	sum->unwritten += more->unwritten;
	sum->sent += more->sent;
	sum->spooled += more->spooled;
	sum->idle += more->idle;
	for (size_t i = 0; i < DISCARD_REASONS_MAX; i++)
		sum->discarded[i] += more->discarded[i];
}

void figures_add(struct instance_figures *sum,
		 const struct instance_figures *more)
{
	counters_add(&sum->capture, &more->capture);
	sum->missed_no_capture += more->missed_no_capture;
	for (size_t e = 0; e < MSG_UNWIND_ENDS_MAX; e++)
		sum->ends[e] += more->ends[e];
	sum->frame_pointer += more->frame_pointer;
	sum->without_lines += more->without_lines;
	sum->unknown_releases += more->unknown_releases;
	sum->unwind_cost_ns += more->unwind_cost_ns;
	add_chunks(&sum->chunks, &more->chunks);
	sum->payload_bytes += more->payload_bytes;
	if (sum->lowest_hz == 0 ||
	    (more->lowest_hz != 0 && more->lowest_hz < sum->lowest_hz))
		sum->lowest_hz = more->lowest_hz;
	sum->lowered_ns = max_u64(sum->lowered_ns, more->lowered_ns);
	sum->exceeded_ns = max_u64(sum->exceeded_ns, more->exceeded_ns);
}

void figures_of_instance(const struct broker *b, const struct instance *i,
			 struct instance_figures *ret)
{
	const struct target *const runs[] = {i->target, i->kept};
	struct instance_figures one;

	*ret = i->past;
	for (size_t k = 0; k < array_size(runs); k++) {
		if (runs[k] == NULL)
			continue;
		figures_of_target(b, runs[k], &one);
		figures_add(ret, &one);
	}
}

void figures_of_all(const struct broker *b, struct instance_figures *ret)
{
	struct instance_figures one;

	*ret = b->gone;
	for (size_t i = 0; i < b->n_instances; i++) {
		figures_of_instance(b, b->instances[i], &one);
		figures_add(ret, &one);
	}
}
