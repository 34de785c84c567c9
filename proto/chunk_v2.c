#include "proto/chunk_v2.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "proto/debug_meta.h"
#include "proto/json_out.h"

/*
 * What samples use, and under which number it is written: numbers count up in
 * the order of the profile's arrays, so that none is longer than the index
 * that it stands for.
 */
struct used {
	uint32_t *stacks; /* by node: its stack's number, or PROFILE_NONE */
	uint32_t *frames; /* by frame: its number, or PROFILE_NONE */
	bool *nodes;	  /* some used stack goes through it */
	bool *threads;
	uint32_t n_stacks; /* the empty one not counted: it is the last */
	bool empty;
};

static void used_fini(struct used *u)
{
	free(u->stacks);
	free(u->frames);
	free(u->nodes);
	free(u->threads);
}

/* One more than n: calloc(0) may be NULL. */
static int used_alloc(const struct profile *p, struct used *u)
{
	u->stacks = calloc(p->n_nodes + 1, sizeof(u->stacks[0]));
	u->frames = calloc(p->n_frames + 1, sizeof(u->frames[0]));
	u->nodes = calloc(p->n_nodes + 1, sizeof(u->nodes[0]));
	u->threads = calloc(p->n_threads + 1, sizeof(u->threads[0]));
	if (u->stacks == NULL || u->frames == NULL || u->nodes == NULL ||
	    u->threads == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_nodes; i++)
		u->stacks[i] = PROFILE_NONE;
	for (size_t i = 0; i < p->n_frames; i++)
		u->frames[i] = PROFILE_NONE;
	return 0;
}

static void used_number(const struct profile *p, struct used *u)
{
	uint32_t n_frames = 0;

	for (size_t i = 0; i < p->n_samples; i++) {
		const struct profile_sample *s = &p->samples[i];

		u->threads[profile_find_thread(p, s->tid)] = true;
		if (s->node == PROFILE_NONE)
			u->empty = true;
		else
			u->stacks[s->node] = 0;
	}
	/* Parents stand before their children: one way back marks all. */
	for (size_t i = p->n_nodes; i-- > 0;) {
		const struct profile_node *node = &p->nodes[i];

		if (u->stacks[i] == 0)
			u->nodes[i] = true;
		if (!u->nodes[i])
			continue;
		u->frames[node->frame] = 0;
		if (node->parent != PROFILE_NONE)
			u->nodes[node->parent] = true;
	}
	for (size_t i = 0; i < p->n_nodes; i++)
		if (u->stacks[i] != PROFILE_NONE)
			u->stacks[i] = u->n_stacks++;
	for (size_t i = 0; i < p->n_frames; i++)
		if (u->frames[i] != PROFILE_NONE)
			u->frames[i] = n_frames++;
}

/* A member of an object; head is everything from the comma to the colon. */
static void write_member(struct json_out *o, const char *head,
			 const char *value)
{
	json_out_raw(o, head);
	json_out_string(o, value);
}

static void write_source(const struct profile_frame *frame, struct json_out *o)
{
	const char *slash = strrchr(frame->file, '/');

	write_member(o, ",\"abs_path\":", frame->file);
	write_member(o,
		     ",\"filename\":", slash != NULL ? slash + 1 : frame->file);
	if (frame->line != 0) {
		json_out_raw(o, ",\"lineno\":");
		json_out_u64(o, frame->line);
	}
}

static void write_frames(const struct profile *p, const struct used *u,
			 struct json_out *o)
{
	const char *comma = "";

	json_out_raw(o, "\"frames\":[");
	for (size_t i = 0; i < p->n_frames; i++) {
		const struct profile_frame *frame = &p->frames[i];

		if (u->frames[i] == PROFILE_NONE)
			continue;
		json_out_raw(o, comma);
		json_out_raw(o, "{\"instruction_addr\":");
		json_out_addr(o, frame->addr);
		if (frame->function != NULL)
			write_member(o, ",\"function\":", frame->function);
		if (frame->package != NULL)
			write_member(o, ",\"package\":", frame->package);
		if (frame->file != NULL)
			write_source(frame, o);
		json_out_raw(o, frame->in_app ? ",\"in_app\":true}"
					      : ",\"in_app\":false}");
		comma = ",";
	}
	json_out_raw(o, "]");
}

/* Leaf first: the way that the parent links go. */
static void write_stack(const struct profile *p, const struct used *u,
			uint32_t node, struct json_out *o)
{
	const char *comma = "";

	json_out_raw(o, "[");
	for (; node != PROFILE_NONE; node = p->nodes[node].parent) {
		json_out_raw(o, comma);
		json_out_u64(o, u->frames[p->nodes[node].frame]);
		comma = ",";
	}
	json_out_raw(o, "]");
}

static void write_stacks(const struct profile *p, const struct used *u,
			 struct json_out *o)
{
	const char *comma = "";

	json_out_raw(o, ",\"stacks\":[");
	for (uint32_t i = 0; i < p->n_nodes; i++) {
		if (u->stacks[i] == PROFILE_NONE)
			continue;
		json_out_raw(o, comma);
		write_stack(p, u, i, o);
		comma = ",";
	}
	if (u->empty) {
		json_out_raw(o, comma);
		json_out_raw(o, "[]");
	}
	json_out_raw(o, "]");
}

/* A profile's thread, where its tid was checked. */
static void write_thread_id(const struct profile_thread *thread,
			    struct json_out *o)
{
	json_out_u64(o, thread->id != 0 ? thread->id : thread->tid);
}

static void write_samples(const struct profile *p, const struct used *u,
			  struct json_out *o)
{
	json_out_raw(o, ",\"samples\":[");
	for (size_t i = 0; i < p->n_samples; i++) {
		const struct profile_sample *s = &p->samples[i];
		bool empty = s->node == PROFILE_NONE;

		json_out_raw(o, i > 0 ? ",{\"timestamp\":" : "{\"timestamp\":");
		json_out_seconds(o, s->time_us);
		json_out_raw(o, ",\"thread_id\":\"");
		write_thread_id(&p->threads[profile_find_thread(p, s->tid)], o);
		json_out_raw(o, "\",\"stack_id\":");
		json_out_u64(o, empty ? u->n_stacks : u->stacks[s->node]);
		json_out_raw(o, "}");
	}
	json_out_raw(o, "]");
}

static void write_threads(const struct profile *p, const struct used *u,
			  struct json_out *o)
{
	const char *comma = "";

	json_out_raw(o, ",\"thread_metadata\":{");
	for (size_t i = 0; i < p->n_threads; i++) {
		const struct profile_thread *thread = &p->threads[i];

		if (!u->threads[i])
			continue;
		json_out_raw(o, comma);
		json_out_raw(o, "\"");
		write_thread_id(thread, o);
		json_out_raw(o, "\":{");
		if (thread->name[0] != '\0')
			write_member(o, "\"name\":", thread->name);
		json_out_raw(o, "}");
		comma = ",";
	}
	json_out_raw(o, "}");
}

/* One of the two: "name":{"unit":...,"values":[...]}. */
static void write_curve(const struct profile *p, bool is_cpu,
			struct json_out *o)
{
	json_out_raw(o, is_cpu ? "\"cpu_usage\":{\"unit\":\"percent\""
			       : "\"memory_footprint\":{\"unit\":\"byte\"");
	json_out_raw(o, ",\"values\":[");
	for (size_t i = 0; i < p->n_measures; i++) {
		const struct profile_measure *m = &p->measures[i];

		json_out_raw(o, i > 0 ? ",{\"timestamp\":" : "{\"timestamp\":");
		json_out_seconds(o, m->time_us);
		json_out_raw(o, ",\"value\":");
		/* Six decimals, as seconds of microseconds have. */
		if (is_cpu)
			json_out_seconds(o, m->cpu_percent_millionths);
		else
			json_out_u64(o, m->memory_bytes);
		json_out_raw(o, "}");
	}
	json_out_raw(o, "]}");
}

static void write_measures(const struct profile *p, struct json_out *o)
{
	if (p->n_measures == 0)
		return;
	json_out_raw(o, ",\"measurements\":{");
	write_curve(p, true, o);
	json_out_raw(o, ",");
	write_curve(p, false, o);
	json_out_raw(o, "}");
}

int chunk_v2_write(const struct profile *p, FILE *out)
{
	struct used u = {0};
	struct json_out o;
	int r = used_alloc(p, &u);

	if (r < 0)
		goto out;
	used_number(p, &u);
	json_out_init(&o, out);
	write_member(&o, "{\"version\":\"2\",\"profiler_id\":", p->profiler_id);
	write_member(&o, ",\"chunk_id\":", p->chunk_id);
	write_member(&o, ",\"platform\":", p->platform);
	write_member(&o, ",\"release\":", p->release);
	write_member(&o, ",\"environment\":", p->environment);
	write_member(&o, ",\"client_sdk\":{\"name\":", p->sdk_name);
	write_member(&o, ",\"version\":", p->sdk_version);
	json_out_raw(&o, "},\"debug_meta\":");
	debug_meta_write(p->images, p->n_images, &o);
	write_measures(p, &o);
	json_out_raw(&o, ",\"profile\":{");
	write_frames(p, &u, &o);
	write_stacks(p, &u, &o);
	write_samples(p, &u, &o);
	write_threads(p, &u, &o);
	json_out_raw(&o, "}}");
	r = json_out_finish(&o);
out:
	used_fini(&u);
	return r;
}
