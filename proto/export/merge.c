#include "proto/export/merge.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/base/glob.h"
#include "proto/export/merge_extra.h"

void merge_init(struct merge *m, const struct merge_options *options)
{
	struct table *const tables[] = {&m->by_process, &m->by_thread, &m->by_frame,
					&m->by_node,	&m->by_sum,    &m->by_image};

	*m = (struct merge){.options = *options};
	string_pool_init(&m->text, options->hash_seed);
	for (size_t i = 0; i < array_size(tables); i++)
		table_init(tables[i], options->hash_seed);
}

void merge_fini(struct merge *m)
{
	if (m == NULL)
		return;
	for (size_t i = 0; i < m->n_processes; i++) {
		free(m->processes[i].images);
		json_decref(m->processes[i].extra);
	}
	for (size_t i = 0; i < m->n_threads; i++)
		covered_fini(&m->threads[i].covered);
	free(m->processes);
	free(m->threads);
	free(m->frames);
	free(m->nodes);
	free(m->node_matches);
	free(m->bars);
	string_pool_fini(&m->text);
	table_fini(&m->by_process);
	table_fini(&m->by_thread);
	table_fini(&m->by_frame);
	table_fini(&m->by_node);
	table_fini(&m->by_sum);
	table_fini(&m->by_image);
	*m = (struct merge){0};
}

const char *merge_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == NULL || slash[1] == '\0' ? path : slash + 1;
}

/* Interns s: *ret is the interned string, or NULL if s is NULL. */
static int intern(struct merge *m, const char *s, const char **ret)
{
	*ret = NULL;
	return s == NULL ? 0 : string_pool_intern(&m->text, s, ret);
}

/* Combines the parts of a key for a table. Interned strings count by their address. */
static uint64_t mix(uint64_t key, uint64_t value)
{
	return (key ^ value) * UINT64_C(0x9e3779b97f4a7c15) + (key >> 29);
}

bool merge_filter_fits(const struct merge_filter *filter, enum merge_filter_kind kind,
		       const char *text)
{
	if (text == NULL || (filter->kind != kind && filter->kind != MERGE_ANYTHING))
		return false;
	return glob_match(filter->pattern, strlen(filter->pattern), text, strlen(text), false);
}

static uint32_t match_frame(const struct merge *m, const struct merge_frame *f)
{
	uint32_t found = 0;

	for (size_t i = 0; i < m->options.n_filters; i++) {
		const struct merge_filter *filter = &m->options.filters[i];

		if (merge_filter_fits(filter, MERGE_FUNCTION, f->name) ||
		    merge_filter_fits(filter, MERGE_MODULE, f->package) ||
		    (f->package != NULL &&
		     merge_filter_fits(filter, MERGE_MODULE, merge_base(f->package))))
			found |= UINT32_C(1) << i;
	}
	return found;
}

static int find_process(struct merge *m, const struct import_chunk *c, uint32_t *ret)
{
	const char *id, *release;
	uint64_t key;
	int r = intern(m, c->profiler_id, &id);

	if (r == 0)
		r = intern(m, json_string_value(json_object_get(c->payload, "release")), &release);
	if (r != 0)
		return r;
	key = mix(mix((uintptr_t)id, (uintptr_t)release), m->side);
	for (; table_get(&m->by_process, key, ret); key++) {
		const struct merge_process *p = &m->processes[*ret];

		if (p->profiler_id == id && p->release == release && p->side == m->side)
			return 0;
	}
	if (array_grow(m->processes, m->n_processes, m->cap_processes) < 0)
		return -ENOMEM;
	*ret = (uint32_t)m->n_processes;
	r = table_put(&m->by_process, key, *ret);
	if (r == 0)
		m->processes[m->n_processes++] = (struct merge_process){
			.profiler_id = id, .release = release, .side = m->side};
	return r;
}

/*
 * Interns the name of a thread without the " (ID)" that the profiler appends in chunks in which
 * several threads have the name: labels do this for all chunks together.
 */
static int intern_name(struct merge *m, const struct import_thread *t, const char **ret)
{
	const size_t n = strlen(t->name), n_id = strlen(t->id), n_end = n_id + strlen(" ()");
	char name[MERGE_NAME_SIZE];

	if (n <= n_end || n - n_end >= sizeof(name) || t->name[n - 1] != ')' ||
	    memcmp(t->name + n - n_end, " (", 2) != 0 ||
	    memcmp(t->name + n - n_id - 1, t->id, n_id) != 0)
		return string_pool_intern(&m->text, t->name, ret);
	memcpy(name, t->name, n - n_end);
	name[n - n_end] = '\0';
	return string_pool_intern(&m->text, name, ret);
}

static int find_thread(struct merge *m, uint32_t process, const struct import_thread *t,
		       uint64_t chunk_ns, uint32_t *ret)
{
	const char *id, *name;
	uint64_t key;
	int r = string_pool_intern(&m->text, t->id, &id);

	if (r == 0)
		r = intern_name(m, t, &name);
	if (r != 0)
		return r;
	for (key = mix((uintptr_t)id, process); table_get(&m->by_thread, key, ret); key++) {
		struct merge_thread *thread = &m->threads[*ret];

		if (thread->id != id || thread->process != process)
			continue;
		if (name[0] != '\0' && chunk_ns >= thread->name_ns) {
			thread->name = name;
			thread->name_ns = chunk_ns;
		}
		return 0;
	}
	if (array_grow(m->threads, m->n_threads, m->cap_threads) < 0)
		return -ENOMEM;
	*ret = (uint32_t)m->n_threads;
	r = table_put(&m->by_thread, key, *ret);
	if (r < 0)
		return r;
	m->threads[m->n_threads++] = (struct merge_thread){
		.process = process,
		.id = id,
		.name = name,
		.name_ns = chunk_ns,
	};
	return 0;
}

/* Sets *ret to the name to show. is_raw: the name may be mangled. */
static int name_frame(struct merge *m, bool is_raw, const struct import_frame *f, const char **ret)
{
	char text[MERGE_NAME_SIZE];
	const char *module = f->package != NULL ? merge_base(f->package) : "unknown";

	if (f->function == NULL || f->function[0] == '\0') {
		(void)snprintf(text, sizeof(text), "[%.*s]", NAME_MAX, module);
		return intern(m, text, ret);
	}
	if (is_raw && m->options.demangle != NULL &&
	    m->options.demangle(f->function, text, sizeof(text)))
		return intern(m, text, ret);
	return intern(m, f->function, ret);
}

/* Makes a frame of the merge from a frame of a chunk, according to the options. */
static int make_frame(struct merge *m, const struct import_chunk *c, uint32_t process,
		      const struct import_frame *f, struct merge_frame *ret)
{
	const bool is_raw = c->platform != NULL && strcmp(c->platform, "rust") == 0;
	int r;

	*ret = (struct merge_frame){.in_app = f->in_app};
	if (!m->options.by_function) {
		ret->addr = f->addr;
		ret->line = f->line;
		ret->process = process;
	}
	r = name_frame(m, is_raw, f, &ret->name);
	if (r == 0)
		r = intern(m, f->function, &ret->function);
	if (r == 0)
		r = intern(m, f->package, &ret->package);
	if (r == 0)
		r = intern(m, f->file, &ret->file);
	return r;
}

static bool same_frame(const struct merge_frame *a, const struct merge_frame *b)
{
	return a->name == b->name && a->package == b->package && a->function == b->function &&
	       a->file == b->file && a->addr == b->addr && a->line == b->line &&
	       a->process == b->process && a->in_app == b->in_app;
}

static int find_frame(struct merge *m, const struct import_chunk *c, uint32_t process,
		      const struct import_frame *f, uint32_t *ret)
{
	struct merge_frame made;
	uint64_t key;
	int r = make_frame(m, c, process, f, &made);

	if (r < 0)
		return r;
	key = mix(mix((uintptr_t)made.name, (uintptr_t)made.package), made.addr);
	key = mix(mix(key, (uintptr_t)made.file), made.line);
	key = mix(key, made.process);
	for (; table_get(&m->by_frame, key, ret); key++)
		if (same_frame(&m->frames[*ret], &made))
			return 0;
	if (array_grow(m->frames, m->n_frames, m->cap_frames) < 0)
		return -ENOMEM;
	*ret = (uint32_t)m->n_frames;
	r = table_put(&m->by_frame, key, *ret);
	if (r < 0)
		return r;
	made.matches = match_frame(m, &made);
	m->frames[m->n_frames++] = made;
	return 0;
}

static int find_node(struct merge *m, uint32_t parent, uint32_t frame, uint32_t *ret)
{
	const uint64_t key = (uint64_t)parent << 32 | frame;
	int r;

	if (table_get(&m->by_node, key, ret))
		return 0;
	if (array_grow(m->nodes, m->n_nodes, m->cap_nodes) < 0 ||
	    array_grow(m->node_matches, m->n_nodes, m->cap_matches) < 0)
		return -ENOMEM;
	*ret = (uint32_t)m->n_nodes;
	r = table_put(&m->by_node, key, *ret);
	if (r < 0)
		return r;
	m->nodes[m->n_nodes] = (struct profile_node){parent, frame};
	m->node_matches[m->n_nodes++] =
		m->frames[frame].matches | (parent == PROFILE_NONE ? 0 : m->node_matches[parent]);
	return 0;
}

static int add_bar(struct merge *m, const struct merge_bar *bar)
{
	if (array_grow(m->bars, m->n_bars, m->cap_bars) < 0)
		return -ENOMEM;
	m->bars[m->n_bars++] = *bar;
	return 0;
}

/* Adds the bar to the sum of the same thread, stack and state. */
static int add_sum(struct merge *m, const struct merge_bar *bar)
{
	uint64_t key = mix((uint64_t)bar->thread << 32 | bar->node, bar->state);
	struct merge_bar sum = *bar;
	uint32_t i;
	int r;

	sum.start_ns = 0;
	for (; table_get(&m->by_sum, key, &i); key++) {
		struct merge_bar *b = &m->bars[i];

		if (b->thread != bar->thread || b->node != bar->node || b->state != bar->state)
			continue;
		b->duration_ns += bar->duration_ns;
		if (b->samples < UINT32_MAX)
			b->samples += bar->samples;
		return 0;
	}
	r = table_put(&m->by_sum, key, (uint32_t)m->n_bars);
	return r < 0 ? r : add_bar(m, &sum);
}

/*
 * Returns true if bars are kept one by one. With has_range they are, too: the time at which the
 * side begins is known only in merge_finish().
 */
static bool keeps_order(const struct merge *m)
{
	return m->options.is_ordered || m->options.has_range;
}

/* Maps indices of the chunk to indices of the merge. PROFILE_NONE: not looked up yet. */
struct numbers {
	uint32_t *threads, *frames, *stacks;
};

static void numbers_fini(struct numbers *n)
{
	free(n->threads);
	free(n->frames);
	free(n->stacks);
}

static uint32_t *new_numbers(size_t n)
{
	uint32_t *v = calloc(n + 1, sizeof(*v));

	if (v == NULL)
		return NULL;
	for (size_t i = 0; i < n; i++)
		v[i] = PROFILE_NONE;
	return v;
}

static int find_stack(struct merge *m, const struct import_chunk *c, struct numbers *numbers,
		      uint32_t process, uint32_t stack)
{
	const size_t first = c->stack_starts[stack];
	uint32_t node = PROFILE_NONE;

	if (numbers->stacks[stack] != PROFILE_NONE)
		return 0;
	for (size_t i = c->stack_starts[stack + 1]; i-- > first;) {
		const uint32_t frame = c->stack_frames[i];
		int r = 0;

		if (numbers->frames[frame] == PROFILE_NONE)
			r = find_frame(m, c, process, &c->frames[frame], &numbers->frames[frame]);
		if (r == 0)
			r = find_node(m, node, numbers->frames[frame], &node);
		if (r < 0)
			return r;
	}
	numbers->stacks[stack] = node;
	return 0;
}

/* Adds a bar without the time that bars of other chunks cover: it may become several. */
static int add_uncovered(struct merge *m, const struct merge_bar *bar)
{
	struct covered *covered = &m->threads[bar->thread].covered;
	const uint64_t end_ns = bar->start_ns + bar->duration_ns;
	struct merge_bar part = *bar;
	uint64_t part_end_ns;
	int r;

	m->overlap_ns += bar->duration_ns;
	do {
		if (!covered_find_gap(covered, &part.start_ns, end_ns, &part_end_ns))
			return 0;
		part.duration_ns = part_end_ns - part.start_ns;
		part.samples = part.start_ns == bar->start_ns;
		m->overlap_ns -= part.duration_ns;
		r = keeps_order(m) ? add_bar(m, &part) : add_sum(m, &part);
		if (r == 0)
			r = covered_add(covered, part.start_ns, part_end_ns);
		part.start_ns = part_end_ns;
	} while (r == 0 && part_end_ns < end_ns);
	return r;
}

static int add_sample(struct merge *m, const struct import_chunk *c, struct numbers *numbers,
		      uint32_t process, const struct import_sample *s)
{
	struct merge_bar bar = {
		.start_ns = s->time_ns,
		.duration_ns = s->duration_ns,
		.state = s->state,
	};
	int r = 0;

	if (m->start_ns == 0 || s->time_ns < m->start_ns)
		m->start_ns = s->time_ns;
	if (s->time_ns + s->duration_ns > m->end_ns)
		m->end_ns = s->time_ns + s->duration_ns;
	if (numbers->threads[s->thread] == PROFILE_NONE)
		r = find_thread(m, process, &c->threads[s->thread], c->samples[0].time_ns,
				&numbers->threads[s->thread]);
	if (r < 0 || s->is_last || c->stack_starts[s->stack] == c->stack_starts[s->stack + 1])
		return r;
	r = find_stack(m, c, numbers, process, s->stack);
	if (r < 0)
		return r;
	bar.thread = numbers->threads[s->thread];
	bar.node = numbers->stacks[s->stack];
	return add_uncovered(m, &bar);
}

static bool same_image(const struct import_image *a, const struct import_image *b)
{
	return a->addr == b->addr && a->size == b->size && a->code_file == b->code_file &&
	       a->debug_id == b->debug_id;
}

/* Adds an image, whose strings are interned, to its process unless it has it. */
static int add_image(struct merge *m, uint32_t process, const struct import_image *image)
{
	uint64_t key = mix(mix(image->addr, (uintptr_t)image->code_file), (uint64_t)process << 1);
	struct merge_process *p = &m->processes[process];
	uint32_t i;
	int r;

	for (; table_get(&m->by_image, key, &i); key++)
		if (i < p->n_images && same_image(&p->images[i], image))
			return 0;
	if (array_grow(p->images, p->n_images, p->cap_images) < 0)
		return -ENOMEM;
	r = table_put(&m->by_image, key, (uint32_t)p->n_images);
	if (r == 0)
		p->images[p->n_images++] = *image;
	return r;
}

static int add_images(struct merge *m, uint32_t process, const struct import_chunk *c)
{
	int r = 0;

	for (size_t i = 0; i < c->n_images && r == 0; i++) {
		struct import_image image = c->images[i];

		r = intern(m, image.code_file, &image.code_file);
		if (r == 0)
			r = intern(m, image.debug_id, &image.debug_id);
		if (r == 0)
			r = intern(m, image.code_id, &image.code_id);
		if (r == 0)
			r = add_image(m, process, &image);
	}
	return r;
}

int merge_add(struct merge *m, const struct import_chunk *c)
{
	struct numbers numbers = {0};
	struct merge_process *p;
	uint32_t process;
	int r = find_process(m, c, &process);

	if (r < 0)
		return r;
	p = &m->processes[process];
	if (c->n_samples > 0) {
		const uint64_t first_ns = c->samples[0].time_ns;

		if (p->start_ns == 0 || first_ns < p->start_ns)
			p->start_ns = first_ns;
		p->end_ns = max_u64(p->end_ns, c->samples[c->n_samples - 1].time_ns);
	}
	if (p->main_program == NULL)
		r = intern(m, c->main_program, &p->main_program);
	if (r == 0 && p->command_line == NULL)
		r = intern(m, c->command_line, &p->command_line);
	m->has_states |= c->has_states;
	m->hides_ready |= c->hides_ready;
	m->lacks_lines |= c->lacks_lines;
	m->joins_samples |= c->joins_samples;
	m->lacks_states |= !c->has_states && c->n_samples > 0;
	numbers.threads = new_numbers(c->n_threads);
	numbers.frames = new_numbers(c->n_frames);
	numbers.stacks = new_numbers(c->n_stacks);
	if (numbers.threads == NULL || numbers.frames == NULL || numbers.stacks == NULL)
		r = -ENOMEM;
	if (r == 0)
		r = add_images(m, process, c);
	if (r == 0 && m->options.keep_extra)
		r = merge_extra_add(&p->extra, c->payload);
	for (size_t i = 0; i < c->n_samples && r == 0; i++)
		r = add_sample(m, c, &numbers, process, &c->samples[i]);
	for (size_t i = 0; i < c->n_threads && r == 0; i++)
		if (numbers.threads[i] != PROFILE_NONE)
			r = covered_settle(&m->threads[numbers.threads[i]].covered);
	numbers_fini(&numbers);
	return r;
}

size_t merge_path(const struct merge *m, uint32_t node, uint32_t *ret_nodes)
{
	size_t n = 0;

	for (uint32_t i = node; i != PROFILE_NONE; i = m->nodes[i].parent)
		n++;
	for (size_t i = n; i-- > 0; node = m->nodes[node].parent)
		ret_nodes[i] = node;
	return n;
}
