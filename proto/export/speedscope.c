#include <stdlib.h>

#include "proto/export/export.h"

/* Writes events that open and close frames. */
struct writer {
	const struct merge *m;
	struct json_out *o;
	uint32_t *open, *path; /* nodes of the open frames and of the next stack, root first */
	size_t n_open;
	bool is_first; /* no event is written yet */
};

#define OPEN  ",{\"type\":\"O\",\"frame\":"
#define CLOSE ",{\"type\":\"C\",\"frame\":"

/* head is OPEN or CLOSE: constant text, since there may be millions of events. */
static void write_event(struct writer *w, const char *head, uint32_t node, uint64_t time_ns)
{
	json_out_raw(w->o, w->is_first ? head + 1 : head);
	w->is_first = false;
	json_out_u64(w->o, w->m->nodes[node].frame);
	json_out_raw(w->o, ",\"at\":");
	json_out_u64(w->o, (time_ns - w->m->start_ns) / NS_PER_US);
	json_out_raw(w->o, "}");
}

/* Closes the innermost frames until n are open. */
static void close_frames(struct writer *w, size_t n, uint64_t time_ns)
{
	while (w->n_open > n)
		write_event(w, CLOSE, w->open[--w->n_open], time_ns);
}

/*
 * Closes and opens frames so that the stack of node is open. Nodes are of a trie, so what two
 * stacks have in common is the first nodes of their paths.
 */
static void change_stack(struct writer *w, uint32_t node, uint64_t time_ns)
{
	const size_t n = merge_path(w->m, node, w->path);
	size_t same = 0;

	while (same < n && same < w->n_open && w->open[same] == w->path[same])
		same++;
	close_frames(w, same, time_ns);
	for (; w->n_open < n; w->n_open++) {
		w->open[w->n_open] = w->path[w->n_open];
		write_event(w, OPEN, w->open[w->n_open], time_ns);
	}
}

static void write_events(struct writer *w, const struct merge_thread *t)
{
	const struct merge_bar *bars = w->m->bars + t->first_bar;

	w->is_first = true;
	for (size_t i = 0; i < t->n_bars; i++) {
		if (i > 0 && export_end(&bars[i - 1]) < bars[i].start_ns)
			close_frames(w, 0, export_end(&bars[i - 1]));
		change_stack(w, bars[i].node, bars[i].start_ns);
	}
	if (t->n_bars > 0)
		close_frames(w, 0, export_end(&bars[t->n_bars - 1]));
}

static void write_frames(const struct merge *m, struct json_out *o)
{
	bool first = true;

	json_out_raw(o, "\"shared\":{\"frames\":[");
	for (size_t i = 0; i < m->n_frames; i++) {
		const struct merge_frame *f = &m->frames[i];

		export_comma(o, &first);
		json_out_member(o, "{\"name\":", f->name);
		if (f->file != NULL || f->package != NULL)
			json_out_member(o, ",\"file\":", f->file != NULL ? f->file : f->package);
		json_out_raw(o, "}");
	}
	json_out_raw(o, "]}");
}

static void write_profiles(struct writer *w)
{
	const struct merge *m = w->m;
	bool first = true;

	json_out_raw(w->o, ",\"profiles\":[");
	for (size_t i = 0; i < m->n_threads; i++) {
		const struct merge_thread *t = &m->threads[i];

		if (t->n_bars == 0)
			continue;
		export_comma(w->o, &first);
		json_out_member(w->o, "{\"type\":\"evented\",\"name\":", t->label);
		json_out_raw(w->o, ",\"unit\":\"microseconds\",\"startValue\":0"
				   ",\"endValue\":");
		json_out_u64(w->o, (m->end_ns - m->start_ns) / NS_PER_US);
		json_out_raw(w->o, ",\"events\":[");
		write_events(w, t);
		json_out_raw(w->o, "]}");
	}
	json_out_raw(w->o, "]");
}

int export_speedscope(const struct merge *m, const struct export_options *o, FILE *out)
{
	struct json_out json;
	struct writer w = {
		.m = m,
		.o = &json,
		.open = calloc(IMPORT_STACK_FRAMES_MAX, sizeof(uint32_t)),
		.path = calloc(IMPORT_STACK_FRAMES_MAX, sizeof(uint32_t)),
	};
	int r = -ENOMEM;

	if (w.open != NULL && w.path != NULL) {
		json_out_init(&json, out);
		json_out_raw(&json, "{\"$schema\":\"https://www.speedscope.app/"
				    "file-format-schema.json\",");
		json_out_raw(&json, "\"exporter\":\"sentry-profd@");
		json_out_raw(&json, o->version);
		json_out_raw(&json, "\",");
		write_frames(m, &json);
		write_profiles(&w);
		json_out_raw(&json, "}\n");
		r = json_out_finish(&json);
	}
	free(w.open);
	free(w.path);
	return r;
}
