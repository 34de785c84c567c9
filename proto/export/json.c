#include <stdlib.h>

#include "proto/export/export.h"
#include "proto/export/points.h"
#include "proto/profile_json.h"

/* The frames and stacks that one process uses, numbered in the order of first use. */
struct used {
	uint32_t *frames, *stacks; /* by frame and by node: the number; PROFILE_NONE: unused */
	uint32_t *frame_list, *stack_list;
	uint32_t n_frames, n_stacks;
	uint32_t *path;
};

static int used_init(const struct merge *m, struct used *u)
{
	*u = (struct used){
		.frames = calloc(m->n_frames + 1, sizeof(uint32_t)),
		.frame_list = calloc(m->n_frames + 1, sizeof(uint32_t)),
		.stacks = calloc(m->n_nodes + 1, sizeof(uint32_t)),
		.stack_list = calloc(m->n_nodes + 1, sizeof(uint32_t)),
		.path = calloc(IMPORT_STACK_FRAMES_MAX, sizeof(uint32_t)),
	};
	if (u->frames == NULL || u->frame_list == NULL || u->stacks == NULL ||
	    u->stack_list == NULL || u->path == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < m->n_frames; i++)
		u->frames[i] = PROFILE_NONE;
	for (size_t i = 0; i < m->n_nodes; i++)
		u->stacks[i] = PROFILE_NONE;
	return 0;
}

static void used_fini(struct used *u)
{
	free(u->frames);
	free(u->frame_list);
	free(u->stacks);
	free(u->stack_list);
	free(u->path);
}

static void use_stack(const struct merge *m, struct used *u, uint32_t node)
{
	if (u->stacks[node] != PROFILE_NONE)
		return;
	u->stacks[node] = u->n_stacks;
	u->stack_list[u->n_stacks++] = node;
	for (; node != PROFILE_NONE; node = m->nodes[node].parent) {
		const uint32_t frame = m->nodes[node].frame;

		if (u->frames[frame] != PROFILE_NONE)
			continue;
		u->frames[frame] = u->n_frames;
		u->frame_list[u->n_frames++] = frame;
	}
}

/* Gives the last sample of a thread the stack of its last bar, as in chunks of the daemon. */
static size_t add_points(const struct merge *m, uint32_t thread, struct export_point *points)
{
	const struct merge_thread *t = &m->threads[thread];
	const size_t n = export_points(m, thread, points);

	if (n > 0)
		points[n - 1].node = m->bars[t->first_bar + t->n_bars - 1].node;
	return n;
}

/* The text before the first element of a list, between elements, and after the last. */
struct list {
	const char *first, *next, *end;
};

static const struct list compact = {"", ",", ""};
static const struct list pretty = {"\n      ", ",\n      ", "\n    "};

static const char *separator(const struct list *list, size_t i)
{
	return i == 0 ? list->first : list->next;
}

static void write_frame(const struct merge_frame *f, struct json_out *o)
{
	const char *head = "{\"instruction_addr\":";

	if (f->addr != 0) {
		json_out_raw(o, head);
		json_out_addr(o, f->addr);
	}
	json_out_raw(o, f->addr != 0 ? ",\"in_app\":" : "{\"in_app\":");
	json_out_raw(o, f->in_app ? "true" : "false");
	if (f->function != NULL)
		json_out_member(o, ",\"function\":", f->function);
	if (f->package != NULL)
		json_out_member(o, ",\"package\":", f->package);
	if (f->file != NULL) {
		json_out_member(o, ",\"abs_path\":", f->file);
		json_out_member(o, ",\"filename\":", merge_base(f->file));
	}
	if (f->line != 0) {
		json_out_raw(o, ",\"lineno\":");
		json_out_u64(o, f->line);
	}
	json_out_raw(o, "}");
}

static void write_stack(const struct merge *m, const struct used *u, uint32_t node,
			struct json_out *o)
{
	bool first = true;

	json_out_raw(o, "[");
	for (; node != PROFILE_NONE; node = m->nodes[node].parent) {
		export_comma(o, &first);
		json_out_u64(o, u->frames[m->nodes[node].frame]);
	}
	json_out_raw(o, "]");
}

static void write_sample(const struct merge *m, const struct used *u, const struct export_point *p,
			 const char *state, struct json_out *o)
{
	json_out_raw(o, "{\"timestamp\":");
	json_out_seconds(o, p->time_ns / NS_PER_US);
	json_out_member(o, ",\"thread_id\":", m->threads[p->thread].id);
	json_out_raw(o, ",\"stack_id\":");
	json_out_u64(o, p->node == PROFILE_NONE ? u->n_stacks : u->stacks[p->node]);
	json_out_raw(o, state);
	json_out_raw(o, "}");
}

static bool is_off_cpu_point(const struct export_point *p)
{
	return p->state != PROFILE_RUNNING && p->node != PROFILE_NONE;
}

static void write_samples(const struct merge *m, const struct used *u,
			  const struct export_point *points, size_t n, const struct list *list,
			  struct json_out *o)
{
	bool first_says = m->has_states;

	for (size_t i = 0; i < n && first_says; i++)
		first_says = !is_off_cpu_point(&points[i]);
	json_out_raw(o, "\"samples\":[");
	for (size_t i = 0; i < n; i++) {
		const char *state = "";

		if (m->has_states && (is_off_cpu_point(&points[i]) || (first_says && i == 0)))
			state = profile_json_state(points[i].state);
		json_out_raw(o, separator(list, i));
		write_sample(m, u, &points[i], state, o);
	}
	json_out_raw(o, list->end);
	json_out_raw(o, list == &pretty ? "],\n    " : "],");
}

static void write_threads(const struct merge *m, uint32_t process, const struct list *list,
			  struct json_out *o)
{
	size_t n = 0;

	json_out_raw(o, "\"thread_metadata\":{");
	for (size_t i = 0; i < m->n_threads; i++) {
		const struct merge_thread *t = &m->threads[i];

		if (t->process != process || t->n_bars == 0)
			continue;
		json_out_raw(o, separator(list, n++));
		json_out_string(o, t->id);
		json_out_raw(o, ":{");
		if (t->name[0] != '\0')
			json_out_member(o, "\"name\":", t->name);
		json_out_raw(o, "}");
	}
	json_out_raw(o, list->end);
	json_out_raw(o, "}");
}

static void write_image(const struct import_image *image, struct json_out *o)
{
	json_out_raw(o, "{\"type\":\"symbolic\"");
	if (image->code_file != NULL)
		json_out_member(o, ",\"code_file\":", image->code_file);
	if (image->debug_id != NULL)
		json_out_member(o, ",\"debug_id\":", image->debug_id);
	if (image->code_id != NULL)
		json_out_member(o, ",\"code_id\":", image->code_id);
	json_out_raw(o, ",\"image_addr\":");
	json_out_addr(o, image->addr);
	json_out_raw(o, ",\"image_vmaddr\":");
	json_out_addr(o, image->vmaddr);
	json_out_raw(o, ",\"image_size\":");
	json_out_u64(o, image->size);
	json_out_raw(o, "}");
}

/* Writes the members of merge_process.extra, a comma after each. */
static void write_extra(json_t *extra, bool is_pretty, struct json_out *o)
{
	const char *name;
	json_t *value;

	json_object_foreach(extra, name, value)
	{
		json_out_string(o, name);
		json_out_raw(o, ":");
		json_out_value(o, value);
		json_out_raw(o, is_pretty ? ",\n  " : ",");
	}
}

static void write_lists(const struct merge *m, const struct used *u,
			const struct export_point *points, size_t n_points, const struct list *list,
			struct json_out *o)
{
	json_out_raw(o, "\"frames\":[");
	for (uint32_t i = 0; i < u->n_frames; i++) {
		json_out_raw(o, separator(list, i));
		write_frame(&m->frames[u->frame_list[i]], o);
	}
	json_out_raw(o, list->end);
	json_out_raw(o, list == &pretty ? "],\n    " : "],");
	json_out_raw(o, "\"stacks\":[");
	for (uint32_t i = 0; i < u->n_stacks; i++) {
		json_out_raw(o, separator(list, i));
		write_stack(m, u, u->stack_list[i], o);
	}
	json_out_raw(o, separator(list, u->n_stacks));
	json_out_raw(o, "[]"); /* the empty stack */
	json_out_raw(o, list->end);
	json_out_raw(o, list == &pretty ? "],\n    " : "],");
	write_samples(m, u, points, n_points, list, o);
}

static void write_payload(const struct merge *m, uint32_t process, const struct used *u,
			  const struct export_point *points, size_t n_points,
			  const struct export_options *options, struct json_out *o)
{
	const struct merge_process *p = &m->processes[process];
	const struct list *list = options->is_pretty ? &pretty : &compact;

	json_out_raw(o, options->is_pretty ? "{\n  " : "{");
	write_extra(p->extra, options->is_pretty, o);
	json_out_raw(o, "\"debug_meta\":{\"images\":[");
	for (size_t i = 0; i < p->n_images; i++) {
		json_out_raw(o, separator(list, i));
		write_image(&p->images[i], o);
	}
	json_out_raw(o, list->end);
	json_out_raw(o, options->is_pretty ? "]},\n  \"profile\":{\n    " : "]},\"profile\":{");
	write_lists(m, u, points, n_points, list, o);
	write_threads(m, process, list, o);
	json_out_raw(o, options->is_pretty ? "\n  }\n}\n" : "}}\n");
}

static int write_process(const struct merge *m, uint32_t process,
			 const struct export_options *options, struct json_out *o)
{
	struct export_point *points = NULL;
	size_t n_bars = 0, n = 0;
	struct used u;
	int r = used_init(m, &u);

	for (size_t i = 0; i < m->n_threads; i++)
		if (m->threads[i].process == process)
			n_bars += m->threads[i].n_bars;
	points = calloc(2 * n_bars + 1, sizeof(*points));
	if (points == NULL)
		r = -ENOMEM;
	for (uint32_t i = 0; i < m->n_threads && r == 0; i++)
		if (m->threads[i].process == process)
			n += add_points(m, i, points + n);
	if (r == 0) {
		export_sort_points(points, n);
		for (size_t i = 0; i < n; i++)
			if (points[i].node != PROFILE_NONE)
				use_stack(m, &u, points[i].node);
		write_payload(m, process, &u, points, n, options, o);
	}
	free(points);
	used_fini(&u);
	return r;
}

int export_json(const struct merge *m, const struct export_options *o, FILE *out)
{
	struct json_out json;
	int r = 0;

	json_out_init(&json, out);
	for (uint32_t i = 0; i < m->n_processes && r == 0; i++)
		r = write_process(m, i, o, &json);
	return r < 0 ? r : json_out_finish(&json);
}
