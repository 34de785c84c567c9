#include "lib/aggregate/stacks.h"

#include <stdlib.h>

#include "lib/base/array.h"

void stacks_init(struct stacks *s, uint64_t hash_seed)
{
	*s = (struct stacks){0};
	table_init(&s->leaves, hash_seed);
	table_init(&s->callers, hash_seed);
	table_init(&s->children, hash_seed);
}

void stacks_fini(struct stacks *s)
{
	if (s == NULL)
		return;
	free(s->frames);
	free(s->nodes);
	free(s->time_of);
	free(s->times);
	table_fini(&s->leaves);
	table_fini(&s->callers);
	table_fini(&s->children);
	stacks_init(s, s->children.seed);
}

static int add_frame(struct stacks *s, uint64_t addr, bool is_leaf, uint32_t *ret)
{
	struct table *table = is_leaf ? &s->leaves : &s->callers;
	int r;

	if (table_get(table, addr, ret))
		return 0;
	if (array_grow(s->frames, s->n_frames, s->cap_frames) < 0)
		return -ENOMEM;
	r = table_put(table, addr, (uint32_t)s->n_frames);
	if (r < 0)
		return r;
	*ret = (uint32_t)s->n_frames++;
	s->frames[*ret] = (struct stacks_frame){addr, is_leaf, false};
	s->payload_bytes += PROFILE_FRAME_BYTES;
	return 0;
}

static int add_node(struct stacks *s, uint32_t parent, uint32_t frame, uint32_t *ret)
{
	uint64_t key = (uint64_t)parent << 32 | frame;
	int r;

	if (table_get(&s->children, key, ret))
		return 0;
	if (array_grow(s->nodes, s->n_nodes, s->cap_nodes) < 0)
		return -ENOMEM;
	if (array_grow(s->time_of, s->n_nodes, s->cap_time_of) < 0)
		return -ENOMEM;
	r = table_put(&s->children, key, (uint32_t)s->n_nodes);
	if (r < 0)
		return r;
	*ret = (uint32_t)s->n_nodes++;
	s->nodes[*ret] = (struct profile_node){parent, frame};
	s->time_of[*ret] = PROFILE_NONE;
	if (parent == PROFILE_NONE || s->nodes[parent].parent == PROFILE_NONE)
		s->frames[frame].near_root = true;
	return 0;
}

/* Gives the stack that ends at node a time: node is a whole stack from now on. */
static int add_time(struct stacks *s, uint32_t node)
{
	if (s->time_of[node] != PROFILE_NONE)
		return 0;
	if (array_grow(s->times, s->n_times, s->cap_times) < 0)
		return -ENOMEM;
	s->time_of[node] = (uint32_t)s->n_times;
	s->times[s->n_times++] = (struct stacks_time){.node = node};
	s->payload_bytes += PROFILE_STACK_BYTES;
	for (; node != PROFILE_NONE; node = s->nodes[node].parent)
		s->payload_bytes += profile_index_bytes(s->nodes[node].frame);
	return 0;
}

int stacks_add(struct stacks *s, uint32_t base, const struct unwind_frame *frames, size_t n,
	       uint32_t *ret_node)
{
	uint32_t node = base;

	for (size_t i = n; i-- > 0;) {
		uint32_t frame;
		int r;

		if (frames[i].addr == 0)
			continue;
		r = add_frame(s, frames[i].addr, frames[i].is_leaf != 0, &frame);
		if (r == 0)
			r = add_node(s, node, frame, &node);
		if (r < 0)
			return r;
	}
	*ret_node = node;
	return node == PROFILE_NONE ? 0 : add_time(s, node);
}

uint32_t stacks_caller(const struct stacks *s, uint32_t node, size_t n)
{
	while (n-- > 0)
		node = s->nodes[node].parent;
	return node;
}

int stacks_copy(struct stacks *s, const struct stacks *from, uint32_t node, uint32_t *ret_node)
{
	struct unwind_frame frames[UNWIND_FRAMES_MAX];
	size_t n = 0;

	for (; node != PROFILE_NONE; node = from->nodes[node].parent) {
		const struct stacks_frame *f = &from->frames[from->nodes[node].frame];

		frames[n++] = (struct unwind_frame){f->addr, f->is_leaf, 0};
	}
	return stacks_add(s, PROFILE_NONE, frames, n, ret_node);
}

void stacks_charge(struct stacks *s, uint32_t node, uint64_t ns, enum profile_state state)
{
	s->times[s->time_of[node]].ns[state] += ns;
}
