#include "lib/aggregate/dedup.h"

#include <stdlib.h>

#include "lib/base/table.h"

void dedup_fini(struct dedup *f)
{
	free(f->frames);
	free(f->nodes);
	*f = (struct dedup){0};
}

static bool is_equal(const struct profile_frame *a, const struct profile_frame *b)
{
	return a->addr == b->addr && a->function == b->function && a->package == b->package &&
	       a->file == b->file && a->line == b->line;
}

static uint64_t key_of(const struct profile_frame *f)
{
	const uint64_t words[] = {f->addr, (uintptr_t)f->function, (uintptr_t)f->package,
				  (uintptr_t)f->file, f->line};
	uint64_t key = 0;

	for (size_t i = 0; i < array_size(words); i++)
		key = key * 31 + words[i];
	return key;
}

/* Merges the frames. Sets folded, by frame of p: the index of the merged frame. */
static int merge_frames(struct dedup *f, struct table *seen, const struct profile *p,
			uint32_t *folded, size_t *ret_n)
{
	uint32_t n = 0;

	for (size_t i = 0; i < p->n_frames; i++) {
		const struct profile_frame *frame = &p->frames[i];
		uint64_t key = key_of(frame);
		int r;

		/* If another frame has the key, this frame has the next free key. */
		while (table_get(seen, key, &folded[i]) && !is_equal(&f->frames[folded[i]], frame))
			key++;
		if (table_get(seen, key, &folded[i])) {
			f->frames[folded[i]].in_app &= frame->in_app;
			continue;
		}
		r = table_put(seen, key, n);
		if (r < 0)
			return r;
		f->frames[n] = *frame;
		folded[i] = n++;
	}
	*ret_n = n;
	return 0;
}

/*
 * Merges the nodes. A parent has a lower index than its children, so it is merged before
 * them.
 */
static int merge_nodes(struct dedup *f, struct table *seen, const struct profile *p,
		       const uint32_t *folded_frames, uint32_t *folded, size_t *ret_n)
{
	uint32_t n = 0;

	for (size_t i = 0; i < p->n_nodes; i++) {
		struct profile_node node = p->nodes[i];
		uint64_t key;
		int r;

		node.frame = folded_frames[node.frame];
		if (node.parent != PROFILE_NONE)
			node.parent = folded[node.parent];
		key = (uint64_t)node.parent << 32 | node.frame;
		if (table_get(seen, key, &folded[i]))
			continue;
		r = table_put(seen, key, n);
		if (r < 0)
			return r;
		f->nodes[n] = node;
		folded[i] = n++;
	}
	*ret_n = n;
	return 0;
}

int dedup_profile(struct dedup *f, uint64_t hash_seed, struct profile_sample *samples,
		  struct profile *p)
{
	uint32_t *frame_of, *node_of;
	size_t n_frames, n_nodes;
	struct table seen;
	int r = 0;

	table_init(&seen, hash_seed);
	/* One element more than needed, because calloc(0) may return NULL. */
	f->frames = calloc(p->n_frames + 1, sizeof(*f->frames));
	f->nodes = calloc(p->n_nodes + 1, sizeof(*f->nodes));
	frame_of = calloc(p->n_frames + 1, sizeof(*frame_of));
	node_of = calloc(p->n_nodes + 1, sizeof(*node_of));
	if (f->frames == NULL || f->nodes == NULL || frame_of == NULL || node_of == NULL)
		r = -ENOMEM;
	if (r == 0)
		r = merge_frames(f, &seen, p, frame_of, &n_frames);
	table_clear(&seen);
	if (r == 0)
		r = merge_nodes(f, &seen, p, frame_of, node_of, &n_nodes);
	if (r != 0) {
		dedup_fini(f);
		goto out;
	}
	p->frames = f->frames;
	p->n_frames = n_frames;
	p->lines = NULL;
	p->nodes = f->nodes;
	p->n_nodes = n_nodes;
	for (size_t i = 0; i < p->n_samples; i++)
		if (samples[i].node != PROFILE_NONE)
			samples[i].node = node_of[samples[i].node];
out:
	free(frame_of);
	free(node_of);
	table_fini(&seen);
	return r;
}
