#include "proto/profile_json.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/*
 * The stacks, frames and threads that samples use, and the numbers that they get in the payload.
 * Numbers count up in the order of the profile's arrays, so no number has more digits than its
 * index, on which the bounds of profile.h rely.
 */
struct used {
	uint32_t *stacks; /* indexed by node: number of its stack, or PROFILE_NONE */
	uint32_t *frames; /* indexed by frame: its number, or PROFILE_NONE */
	bool *nodes;	  /* the node is part of a used stack */
	bool *threads;
	uint32_t n_stacks; /* without the empty stack, which is the last one */
	bool empty;	   /* a sample has the empty stack */
};

static void used_fini(struct used *u)
{
	free(u->stacks);
	free(u->frames);
	free(u->nodes);
	free(u->threads);
}

/* Allocates one element more than needed: calloc(0) may return NULL. */
static int used_alloc(const struct profile *p, struct used *u)
{
	u->stacks = calloc(p->n_nodes + 1, sizeof(u->stacks[0]));
	u->frames = calloc(p->n_frames + 1, sizeof(u->frames[0]));
	u->nodes = calloc(p->n_nodes + 1, sizeof(u->nodes[0]));
	u->threads = calloc(p->n_threads + 1, sizeof(u->threads[0]));
	if (u->stacks == NULL || u->frames == NULL || u->nodes == NULL || u->threads == NULL)
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
	/* Parents come before their children: one pass backwards marks all of them. */
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

static void write_source(const struct profile_frame *frame, struct json_out *o)
{
	const char *slash = strrchr(frame->file, '/');

	json_out_member(o, ",\"abs_path\":", frame->file);
	json_out_member(o, ",\"filename\":", slash != NULL ? slash + 1 : frame->file);
	if (frame->line != 0) {
		json_out_raw(o, ",\"lineno\":");
		json_out_u64(o, frame->line);
	}
}

/* Writes an element of "lines". function: NULL: that of the frame itself. */
static void write_line(const char *function, const char *file, uint32_t line, struct json_out *o)
{
	const char *comma = "";

	json_out_raw(o, "{");
	if (function != NULL) {
		json_out_member(o, "\"function\":", function);
		comma = ",";
	}
	if (file != NULL) {
		json_out_raw(o, comma);
		json_out_member(o, "\"file\":", file);
		comma = ",";
	}
	if (line != 0) {
		json_out_raw(o, comma);
		json_out_raw(o, "\"line\":");
		json_out_u64(o, line);
	}
	json_out_raw(o, "}");
}

/* Writes the member "lines" of a frame, if there is something to write. */
static void write_lines(const struct profile *p, size_t frame, struct json_out *o)
{
	const struct profile_lines *lines = &p->lines[frame];

	if (lines->n == 0 && lines->file == NULL)
		return;
	json_out_raw(o, ",\"" PROFILE_LINES "\":[");
	for (uint32_t i = lines->first; i < lines->first + lines->n; i++) {
		write_line(p->inlined[i].function, p->inlined[i].file, p->inlined[i].line, o);
		json_out_raw(o, ",");
	}
	write_line(NULL, lines->file, lines->line, o);
	json_out_raw(o, "]");
}

static void write_frames(const struct profile *p, const struct used *u, bool for_file,
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
			json_out_member(o, ",\"function\":", frame->function);
		if (frame->package != NULL)
			json_out_member(o, ",\"package\":", frame->package);
		if (frame->file != NULL)
			write_source(frame, o);
		json_out_raw(o, frame->in_app ? ",\"in_app\":true" : ",\"in_app\":false");
		if (for_file && p->lines != NULL)
			write_lines(p, i, o);
		json_out_raw(o, "}");
		comma = ",";
	}
	json_out_raw(o, "]");
}

/* Writes the frames from the leaf to the root. */
static void write_stack(const struct profile *p, const struct used *u, uint32_t node,
			struct json_out *o)
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

static void write_stacks(const struct profile *p, const struct used *u, struct json_out *o)
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

const char *profile_json_state(enum profile_state state)
{
	static const char *const members[PROFILE_STATES] = {
		[PROFILE_RUNNING] = PROFILE_STATE_RUNNING,
		[PROFILE_READY] = PROFILE_STATE_READY,
		[PROFILE_WAITING] = PROFILE_STATE_WAITING,
	};

	return members[state];
}

void profile_json_thread_id(const struct profile_thread *thread, struct json_out *o)
{
	json_out_u64(o, thread->id != 0 ? thread->id : thread->tid);
}

static void write_time(const struct profile *p, const struct profile_sample *s,
		       enum profile_json_clock clock, struct json_out *o)
{
	const uint64_t since_us = s->time_us - p->samples[0].time_us;

	if (clock == PROFILE_JSON_UNIX) {
		json_out_raw(o, "{\"timestamp\":");
		json_out_seconds(o, s->time_us);
		return;
	}
	json_out_raw(o, "{\"elapsed_since_start_ns\":\"");
	json_out_u64(o,
		     1000 * (since_us < PROFILE_JSON_ELAPSED_MAX_US ? since_us
								    : PROFILE_JSON_ELAPSED_MAX_US));
	json_out_raw(o, "\"");
}

static bool all_are_running(const struct profile *p)
{
	for (size_t i = 0; i < p->n_samples; i++)
		if (p->samples[i].state != PROFILE_RUNNING)
			return false;
	return true;
}

static void write_samples(const struct profile *p, const struct used *u,
			  enum profile_json_clock clock, bool with_states, struct json_out *o)
{
	const bool first_says = with_states && all_are_running(p);
	const char *comma = "";

	json_out_raw(o, ",\"samples\":[");
	for (size_t i = 0; i < p->n_samples; i++) {
		const struct profile_sample *s = &p->samples[i];
		bool empty = s->node == PROFILE_NONE;

		if (s->is_for_files && !with_states)
			continue;
		json_out_raw(o, comma);
		comma = ",";
		write_time(p, s, clock, o);
		json_out_raw(o, ",\"thread_id\":\"");
		profile_json_thread_id(&p->threads[profile_find_thread(p, s->tid)], o);
		json_out_raw(o, "\",\"stack_id\":");
		json_out_u64(o, empty ? u->n_stacks : u->stacks[s->node]);
		if (with_states && (s->state != PROFILE_RUNNING || (first_says && i == 0)))
			json_out_raw(o, profile_json_state(s->state));
		json_out_raw(o, "}");
	}
	json_out_raw(o, "]");
}

static void write_threads(const struct profile *p, const struct used *u, struct json_out *o)
{
	const char *comma = "";

	json_out_raw(o, ",\"thread_metadata\":{");
	for (size_t i = 0; i < p->n_threads; i++) {
		const struct profile_thread *thread = &p->threads[i];

		if (!u->threads[i])
			continue;
		json_out_raw(o, comma);
		json_out_raw(o, "\"");
		profile_json_thread_id(thread, o);
		json_out_raw(o, "\":{");
		if (thread->name[0] != '\0')
			json_out_member(o, "\"name\":", thread->name);
		json_out_raw(o, "}");
		comma = ",";
	}
	json_out_raw(o, "}");
}

int profile_json_write(const struct profile *p, enum profile_json_clock clock, bool for_file,
		       struct json_out *o)
{
	struct used u = {0};
	int r = used_alloc(p, &u);

	if (r == 0) {
		used_number(p, &u);
		json_out_raw(o, "\"profile\":{");
		write_frames(p, &u, for_file, o);
		write_stacks(p, &u, o);
		write_samples(p, &u, clock, for_file, o);
		write_threads(p, &u, o);
		json_out_raw(o, "}");
	}
	used_fini(&u);
	return r;
}
