#include <stdlib.h>
#include <string.h>

#include "proto/export/export.h"
#include "proto/export/points.h"

static bool is_chosen(const struct merge_thread *t, const char *name)
{
	return name == NULL || strcmp(t->label, name) == 0 || strcmp(t->name, name) == 0 ||
	       strcmp(t->id, name) == 0;
}

bool export_has_thread(const struct merge *m, const char *name)
{
	for (size_t i = 0; i < m->n_threads; i++)
		if (is_chosen(&m->threads[i], name))
			return true;
	return false;
}

/* Writes the paths of modules as resources, which are URLs of scripts in the format. */
static int write_resources(const struct merge *m, uint32_t *resources, struct json_out *o)
{
	struct table numbers;
	bool first = true;
	uint32_t n = 0;
	int r = 0;

	table_init(&numbers, m->options.hash_seed);
	json_out_raw(o, "{\"resources\":[");
	for (size_t i = 0; i < m->n_frames && r == 0; i++) {
		const char *path = m->frames[i].package;

		resources[i] = PROFILE_NONE;
		if (path == NULL)
			continue;
		/* Strings of a merge are interned. */
		if (table_get(&numbers, (uintptr_t)path, &resources[i]))
			continue;
		r = table_put(&numbers, (uintptr_t)path, n);
		resources[i] = n++;
		export_comma(o, &first);
		json_out_string(o, path);
	}
	json_out_raw(o, "]");
	table_fini(&numbers);
	return r;
}

/* Writes the frames of functions, then one frame for each thread. */
static void write_frames(const struct merge *m, const uint32_t *resources, bool with_threads,
			 struct json_out *o)
{
	bool first = true;

	json_out_raw(o, ",\"frames\":[");
	for (size_t i = 0; i < m->n_frames; i++) {
		export_comma(o, &first);
		json_out_member(o, "{\"name\":", m->frames[i].name);
		if (resources[i] != PROFILE_NONE) {
			json_out_raw(o, ",\"resourceId\":");
			json_out_u64(o, resources[i]);
		}
		json_out_raw(o, "}");
	}
	for (size_t i = 0; i < m->n_threads && with_threads; i++) {
		export_comma(o, &first);
		json_out_member(o, "{\"name\":", m->threads[i].label);
		json_out_raw(o, "}");
	}
	json_out_raw(o, "]");
}

/* Writes stacks at their first use, and numbers them. */
struct stacks {
	const struct merge *m;
	struct json_out *o;
	/* from (thread or PROFILE_NONE, node) to the number */
	struct table numbers;
	uint32_t *path;
	uint32_t n;
	bool is_first;
};

static uint64_t key_of(uint32_t thread, uint32_t node)
{
	return (uint64_t)thread << 32 | node;
}

static int find_stack(struct stacks *s, uint32_t thread, uint32_t node, uint32_t frame,
		      uint32_t parent, uint32_t *ret)
{
	if (table_get(&s->numbers, key_of(thread, node), ret))
		return 0;
	export_comma(s->o, &s->is_first);
	json_out_raw(s->o, "{\"frameId\":");
	json_out_u64(s->o, frame);
	if (parent != PROFILE_NONE) {
		json_out_raw(s->o, ",\"parentId\":");
		json_out_u64(s->o, parent);
	}
	json_out_raw(s->o, "}");
	*ret = s->n++;
	return table_put(&s->numbers, key_of(thread, node), *ret);
}

/* Writes the stack of a point. with_threads: the frame of the thread is the root. */
static int write_stack(struct stacks *s, bool with_threads, const struct export_point *p,
		       uint32_t *ret)
{
	const size_t n = merge_path(s->m, p->node, s->path);
	const uint32_t thread = with_threads ? p->thread : PROFILE_NONE;
	uint32_t number = PROFILE_NONE;
	int r = 0;

	if (with_threads)
		r = find_stack(s, thread, PROFILE_NONE, (uint32_t)s->m->n_frames + p->thread,
			       PROFILE_NONE, &number);
	for (size_t i = 0; i < n && r == 0; i++)
		r = find_stack(s, thread, s->path[i], s->m->nodes[s->path[i]].frame, number,
			       &number);
	*ret = number;
	return r;
}

static int write_stacks(const struct merge *m, const struct export_point *points, size_t n,
			bool with_threads, uint32_t *ret_stacks, struct json_out *o)
{
	struct stacks s = {
		.m = m,
		.o = o,
		.path = calloc(IMPORT_STACK_FRAMES_MAX, sizeof(uint32_t)),
		.is_first = true,
	};
	int r = s.path == NULL ? -ENOMEM : 0;

	table_init(&s.numbers, m->options.hash_seed);
	json_out_raw(o, ",\"stacks\":[");
	for (size_t i = 0; i < n && r == 0; i++)
		r = write_stack(&s, with_threads, &points[i], &ret_stacks[i]);
	json_out_raw(o, "]");
	table_fini(&s.numbers);
	free(s.path);
	return r;
}

static void write_samples(const struct merge *m, const struct export_point *points,
			  const uint32_t *stacks, size_t n, struct json_out *o)
{
	bool first = true;

	json_out_raw(o, ",\"samples\":[");
	for (size_t i = 0; i < n; i++) {
		export_comma(o, &first);
		json_out_raw(o, "{\"timestamp\":");
		export_ms(o, points[i].time_ns - m->start_ns);
		if (stacks[i] != PROFILE_NONE) {
			json_out_raw(o, ",\"stackId\":");
			json_out_u64(o, stacks[i]);
		}
		json_out_raw(o, "}");
	}
	json_out_raw(o, "]}\n");
}

/* Arrays that the output needs. */
struct arrays {
	struct export_point *points;
	uint32_t *stacks;    /* by point: its stack's number in the output */
	uint32_t *resources; /* by frame */
};

static int write_profile(const struct merge *m, const char *thread, const struct arrays *arrays,
			 FILE *out)
{
	struct json_out json;
	size_t n = 0;
	int r;

	for (uint32_t i = 0; i < m->n_threads; i++) {
		if (!is_chosen(&m->threads[i], thread))
			continue;
		n += export_points(m, i, arrays->points + n);
		if (thread != NULL)
			break;
	}
	export_sort_points(arrays->points, n);
	json_out_init(&json, out);
	r = write_resources(m, arrays->resources, &json);
	if (r < 0)
		return r;
	write_frames(m, arrays->resources, thread == NULL, &json);
	r = write_stacks(m, arrays->points, n, thread == NULL, arrays->stacks, &json);
	if (r < 0)
		return r;
	write_samples(m, arrays->points, arrays->stacks, n, &json);
	return json_out_finish(&json);
}

int export_self_profiling(const struct merge *m, const struct export_options *o, FILE *out)
{
	const size_t n = 2 * m->n_bars + 1;
	struct arrays arrays = {
		.points = calloc(n, sizeof(*arrays.points)),
		.stacks = calloc(n, sizeof(*arrays.stacks)),
		.resources = calloc(m->n_frames + 1, sizeof(*arrays.resources)),
	};
	int r = -ENOMEM;

	if (arrays.points != NULL && arrays.stacks != NULL && arrays.resources != NULL)
		r = write_profile(m, o->thread, &arrays, out);
	free(arrays.points);
	free(arrays.stacks);
	free(arrays.resources);
	return r;
}
