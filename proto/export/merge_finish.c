/* merge_finish(): makes labels, applies filters, sorts bars; and what needs sorted lists. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/base/digits.h"

#include "proto/export/merge.h"

/* Room for a name, an id, a profiler_id and a release. Longer ones are truncated. */
#define LABEL_SIZE 4500

static bool has_wanted_state(enum merge_states wanted, enum profile_state state)
{
	switch (wanted) {
	case MERGE_ALL:
		return true;
	case MERGE_RUNNING:
		return state == PROFILE_RUNNING;
	case MERGE_READY:
		return state == PROFILE_READY;
	case MERGE_WAITING:
		return state == PROFILE_WAITING;
	}
	return true;
}

static bool is_wanted(const struct merge *m, const struct merge_bar *bar)
{
	const uint32_t all = (UINT32_C(1) << m->options.n_filters) - 1;

	if (!has_wanted_state(m->options.states, bar->state))
		return false;
	return ((m->node_matches[bar->node] | m->threads[bar->thread].matches) & all) == all;
}

uint64_t merge_selected(const struct merge *m, uint64_t all_ns, uint64_t *ret_from_ns)
{
	const struct merge_options *o = &m->options;
	const uint64_t until_ns = o->has_range ? min_u64(o->until_ns, all_ns) : all_ns;

	*ret_from_ns = o->has_range ? min_u64(o->from_ns, all_ns) : 0;
	return until_ns > *ret_from_ns ? until_ns - *ret_from_ns : 0;
}

void merge_side_time(const struct merge *m, uint32_t side, uint64_t *ret_start_ns,
		     uint64_t *ret_end_ns)
{
	uint64_t start_ns = UINT64_MAX, end_ns = 0;

	for (size_t i = 0; i < m->n_processes; i++) {
		const struct merge_process *p = &m->processes[i];

		if (p->side != side || p->end_ns == 0)
			continue;
		start_ns = min_u64(start_ns, p->start_ns);
		end_ns = max_u64(end_ns, p->end_ns);
	}
	*ret_start_ns = end_ns > 0 ? start_ns : 0;
	*ret_end_ns = end_ns;
}

/*
 * Cuts the bar to the selected range of time, of a side that began at start_ns. Returns false
 * if nothing is left. If the start of the bar is cut off, its sample is not counted.
 */
static bool shorten_to_range(const struct merge *m, uint64_t start_ns, struct merge_bar *bar)
{
	const uint64_t from = start_ns + m->options.from_ns;
	const uint64_t until = m->options.until_ns > UINT64_MAX - start_ns
				       ? UINT64_MAX
				       : start_ns + m->options.until_ns;
	const uint64_t end = bar->start_ns + bar->duration_ns;

	if (bar->start_ns >= until || end <= from)
		return false;
	if (bar->start_ns < from) {
		bar->samples = 0;
		bar->start_ns = from;
	}
	bar->duration_ns = min_u64(end, until) - bar->start_ns;
	return true;
}

static void select_bars(struct merge *m)
{
	/* The times of the side of the previous bar. */
	uint64_t start_ns, end_ns;
	uint32_t side = 0;
	size_t n = 0;

	merge_side_time(m, side, &start_ns, &end_ns);
	for (size_t i = 0; i < m->n_bars; i++) {
		struct merge_bar bar = m->bars[i];
		const struct merge_thread *t = &m->threads[bar.thread];

		if (m->processes[t->process].side != side) {
			side = m->processes[t->process].side;
			merge_side_time(m, side, &start_ns, &end_ns);
		}
		if (is_wanted(m, &bar) &&
		    (!m->options.has_range || shorten_to_range(m, start_ns, &bar)))
			m->bars[n++] = bar;
	}
	m->n_bars = n;
}

/* Compares bars without their times. add_up() adds up bars that are equal. */
static int compare_sums(const void *a, const void *b)
{
	const struct merge_bar *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return (int)x->state - (int)y->state;
}

static int compare_times(const void *a, const void *b)
{
	const struct merge_bar *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return x->duration_ns < y->duration_ns ? -1 : x->duration_ns > y->duration_ns;
}

/* Replaces equal neighbours by their sum, for formats without times. */
static void add_up(struct merge *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n_bars; i++) {
		const struct merge_bar *bar = &m->bars[i];
		struct merge_bar *sum = n > 0 ? &m->bars[n - 1] : NULL;

		if (sum == NULL || compare_sums(sum, bar) != 0) {
			m->bars[n] = *bar;
			m->bars[n++].start_ns = 0;
			continue;
		}
		sum->duration_ns += bar->duration_ns;
		sum->samples += bar->samples;
	}
	m->n_bars = n;
}

/* Sets first_bar and n_bars of each thread. Bars are sorted by thread. */
static void distribute(struct merge *m)
{
	for (size_t i = 0; i < m->n_bars; i++) {
		struct merge_thread *t = &m->threads[m->bars[i].thread];

		if (t->n_bars++ == 0)
			t->first_bar = i;
	}
}

/* Returns the name of the thread, or its id if it has none. Both are interned. */
static const char *name_or_id(const struct merge_thread *t)
{
	return t->name[0] != '\0' ? t->name : t->id;
}

/* Counts threads by name, by name and id, and by name, id and profiler_id. */
struct name_counts {
	struct table names, pairs, triples;
};

/* Interned texts are near each other in memory: with small factors, pairs would have one key. */
static uint64_t name_and_id_key(const struct merge_thread *t)
{
	return (uintptr_t)name_or_id(t) * UINT64_C(0x9e3779b97f4a7c15) +
	       (uintptr_t)t->id * UINT64_C(0xc2b2ae3d27d4eb4f);
}

static uint64_t triple_key(const struct merge *m, const struct merge_thread *t)
{
	return name_and_id_key(t) +
	       (uintptr_t)m->processes[t->process].profiler_id * UINT64_C(0x165667b19e3779f9);
}

static int count(struct table *table, uint64_t key)
{
	uint32_t n = 0;

	(void)table_get(table, key, &n);
	return table_put(table, key, n + 1);
}

static bool is_repeated(const struct table *table, uint64_t key)
{
	uint32_t n = 0;

	return table_get(table, key, &n) && n > 1;
}

static void put_name_and_id(const struct merge_thread *t, char text[LABEL_SIZE])
{
	(void)snprintf(text, LABEL_SIZE, "%.4096s (%.64s)", name_or_id(t), t->id);
}

static int label(struct merge *m, const struct name_counts *s, struct merge_thread *t)
{
	const struct merge_process *p = &m->processes[t->process];
	char text[LABEL_SIZE];

	if (is_repeated(&s->triples, triple_key(m, t)))
		(void)snprintf(text, sizeof(text), "%.4096s (%.64s, %.64s, %.200s)", name_or_id(t),
			       t->id, p->profiler_id, p->release == NULL ? "" : p->release);
	else if (is_repeated(&s->pairs, name_and_id_key(t)))
		(void)snprintf(text, sizeof(text), "%.4096s (%.64s, %.64s)", name_or_id(t), t->id,
			       p->profiler_id);
	else if (is_repeated(&s->names, (uintptr_t)name_or_id(t)))
		put_name_and_id(t, text);
	else
		return string_pool_intern(&m->text, name_or_id(t), &t->label);
	return string_pool_intern(&m->text, text, &t->label);
}

static int label_all(struct merge *m)
{
	struct name_counts s;
	int r = 0;

	table_init(&s.names, m->options.hash_seed);
	table_init(&s.pairs, m->options.hash_seed);
	table_init(&s.triples, m->options.hash_seed);
	for (size_t i = 0; i < m->n_threads && r == 0; i++) {
		r = count(&s.names, (uintptr_t)name_or_id(&m->threads[i]));
		if (r == 0)
			r = count(&s.pairs, name_and_id_key(&m->threads[i]));
		if (r == 0)
			r = count(&s.triples, triple_key(m, &m->threads[i]));
	}
	for (size_t i = 0; i < m->n_threads && r == 0; i++)
		r = label(m, &s, &m->threads[i]);
	table_fini(&s.names);
	table_fini(&s.pairs);
	table_fini(&s.triples);
	return r;
}

/* Also compares "NAME (ID)", since the page shows every thread like that. */
static bool filter_matches(const struct merge_filter *filter, const struct merge_thread *t)
{
	char name_and_id[LABEL_SIZE];

	put_name_and_id(t, name_and_id);
	return merge_filter_fits(filter, MERGE_THREAD, t->name) ||
	       merge_filter_fits(filter, MERGE_THREAD, t->id) ||
	       merge_filter_fits(filter, MERGE_THREAD, t->label) ||
	       merge_filter_fits(filter, MERGE_THREAD, name_and_id);
}

/* Sets the filters that match the thread. Needs the labels. */
static void match_thread(const struct merge *m, struct merge_thread *t)
{
	for (size_t i = 0; i < m->options.n_filters; i++)
		if (filter_matches(&m->options.filters[i], t))
			t->matches |= UINT32_C(1) << i;
}

/* Compares decimal numbers. */
static bool is_lower(const char *a, const char *b)
{
	const size_t n_a = strlen(a), n_b = strlen(b);

	return n_a != n_b ? n_a < n_b : strcmp(a, b) < 0;
}

/*
 * Sets main_thread and pid of processes: the id of the thread called "main". If the program's own
 * name is main, all its threads are called that; the first one usually has the lowest id. An id
 * that is the result of pthread_self(3) is no pid.
 */
static void find_pids(struct merge *m)
{
	for (size_t i = 0; i < m->n_threads; i++) {
		const struct merge_thread *t = &m->threads[i];
		struct merge_process *p = &m->processes[t->process];
		int32_t ignored;

		if (strcmp(t->name, "main") == 0 &&
		    (p->main_thread == NULL || is_lower(t->id, p->main_thread))) {
			p->main_thread = t->id;
			p->pid = digits_pid(t->id, &ignored) ? t->id : NULL;
		}
	}
}

static int compare_images(const void *a, const void *b)
{
	const struct import_image *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

uint32_t merge_find_image(const struct merge *m, const struct merge_frame *frame)
{
	const struct merge_process *p = &m->processes[frame->process];
	const size_t n = array_upper_bound(p->images, p->n_images, addr, frame->addr);

	if (n == 0 || frame->addr == 0 ||
	    frame->addr - p->images[n - 1].addr >= p->images[n - 1].size)
		return PROFILE_NONE;
	return (uint32_t)(n - 1);
}

const char *merge_main_program(const struct merge_process *p)
{
	const struct import_image *lowest = NULL;

	if (p->main_program != NULL)
		return p->main_program;
	for (size_t i = 0; i < p->n_images; i++)
		if (p->images[i].code_file != NULL &&
		    (lowest == NULL || p->images[i].addr < lowest->addr))
			lowest = &p->images[i];
	return lowest != NULL ? lowest->code_file : NULL;
}

int merge_finish(struct merge *m)
{
	const int r = label_all(m);

	if (r < 0)
		return r;
	for (size_t i = 0; i < m->n_threads; i++)
		match_thread(m, &m->threads[i]);
	for (size_t i = 0; i < m->n_processes; i++)
		if (m->processes[i].n_images > 1)
			qsort(m->processes[i].images, m->processes[i].n_images,
			      sizeof(struct import_image), compare_images);
	select_bars(m);
	if (m->n_bars > 1)
		qsort(m->bars, m->n_bars, sizeof(*m->bars),
		      m->options.is_ordered ? compare_times : compare_sums);
	if (m->options.has_range && !m->options.is_ordered)
		add_up(m);
	distribute(m);
	find_pids(m);
	return 0;
}
