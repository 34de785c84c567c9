#include "lib/aggregate/expand.h"

#include <stdlib.h>

/* Size of a frame index in a payload's stack, with its comma, up to a million frames. */
#define INDEX_BYTES 8

void expand_fini(struct expand *e)
{
	free(e->frames);
	free(e->nodes);
	*e = (struct expand){0};
}

/* Returns the number of frames that frame i becomes. */
static size_t n_expanded(const struct lookup *l, size_t i)
{
	return 1 + (size_t)l->lines[i].n;
}

/* Returns true if the expanded stacks and frames fit into the payload. */
static bool fits_payload(const struct lookup *l, const struct stacks *s, size_t n_frames)
{
	size_t bytes = n_frames * PROFILE_FRAME_BYTES;

	for (size_t i = 0; i < s->n_times; i++) {
		uint32_t node = s->times[i].node;

		for (; node != PROFILE_NONE; node = s->nodes[node].parent)
			bytes += n_expanded(l, s->nodes[node].frame) * INDEX_BYTES;
		if (bytes > EXPAND_PAYLOAD_MAX)
			return false;
	}
	return bytes <= EXPAND_PAYLOAD_MAX;
}

/*
 * Fills in the expanded frames: the outermost function of each old frame first. Sets base,
 * by old frame: the index of the outermost function.
 */
static void fill_frames(const struct lookup *l, struct profile_frame *out, uint32_t *base)
{
	uint32_t n = 0;

	for (size_t i = 0; i < l->n_frames; i++) {
		const struct profile_lines *lines = &l->lines[i];

		base[i] = n;
		out[n++] = l->frames[i];
		for (uint32_t k = lines->n; k-- > 0;)
			out[n++] = l->inlined[lines->first + k];
	}
}

/*
 * Fills in the expanded nodes and returns their number. Sets last, by old node: the
 * innermost of the nodes that the old node becomes.
 */
static size_t fill_nodes(const struct lookup *l, const struct stacks *s, const uint32_t *base,
			 struct profile_node *out, uint32_t *last)
{
	uint32_t n = 0;

	for (size_t i = 0; i < s->n_nodes; i++) {
		const struct profile_node *node = &s->nodes[i];
		uint32_t parent = node->parent;

		if (parent != PROFILE_NONE)
			parent = last[parent];
		for (uint32_t k = 0; k < n_expanded(l, node->frame); k++) {
			out[n] = (struct profile_node){parent, base[node->frame] + k};
			parent = n++;
		}
		last[i] = parent;
	}
	return n;
}

int expand_inlined(struct expand *e, const struct lookup *l, const struct stacks *s,
		   struct profile_sample *samples, struct profile *p)
{
	size_t n_frames = l->n_frames + l->n_inlined, n_nodes = 0;
	uint32_t *base, *last;
	int r = 0;

	if (l->n_inlined == 0 || !fits_payload(l, s, n_frames))
		return 0;
	for (size_t i = 0; i < s->n_nodes; i++)
		n_nodes += n_expanded(l, s->nodes[i].frame);
	base = calloc(l->n_frames, sizeof(*base));
	last = calloc(s->n_nodes + 1, sizeof(*last));
	e->frames = calloc(n_frames, sizeof(*e->frames));
	e->nodes = calloc(n_nodes + 1, sizeof(*e->nodes));
	if (base == NULL || last == NULL || e->frames == NULL || e->nodes == NULL ||
	    n_nodes >= PROFILE_NONE) {
		expand_fini(e);
		r = -ENOMEM;
		goto out;
	}
	fill_frames(l, e->frames, base);
	p->n_nodes = fill_nodes(l, s, base, e->nodes, last);
	p->nodes = e->nodes;
	p->frames = e->frames;
	p->n_frames = n_frames;
	p->lines = NULL;
	for (size_t i = 0; i < p->n_samples; i++)
		if (samples[i].node != PROFILE_NONE)
			samples[i].node = last[samples[i].node];
out:
	free(base);
	free(last);
	return r;
}
