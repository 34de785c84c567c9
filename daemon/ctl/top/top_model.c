#include "daemon/ctl/top/top_model.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/base/siphash.h"

static void init_sums(struct top_sums *s, enum top_kind kind, uint64_t hash_seed)
{
	*s = (struct top_sums){
		.kind = kind,
		.whole = {.key = TOP_NO_KEY, .name = "(others)", .detail = ""},
	};
	table_init(&s->by_key, hash_seed);
}

static void fini_sums(struct top_sums *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i].text);
	free(s->v);
	table_fini(&s->by_key);
}

void top_model_init(struct top_model *m, merge_demangle *demangle, uint64_t hash_seed)
{
	*m = (struct top_model){.demangle = demangle, .hash_seed = hash_seed};
	init_sums(&m->functions, TOP_FUNCTIONS, hash_seed);
	init_sums(&m->threads, TOP_THREADS, hash_seed);
	init_sums(&m->chosen, TOP_FUNCTIONS, hash_seed);
}

void top_model_fini(struct top_model *m)
{
	fini_sums(&m->functions);
	fini_sums(&m->threads);
	fini_sums(&m->chosen);
	merge_fini(&m->last);
	*m = (struct top_model){0};
}

/* Rows. */

/*
 * Returns the key of two strings, never TOP_NO_KEY. Different strings have the same key, and so
 * become one row, with a probability of 1 to 2^63.
 */
static uint64_t key_of(const struct top_model *m, const char *a, const char *b)
{
	uint64_t seed[2] = {m->hash_seed};
	uint8_t key[SIPHASH_KEY_SIZE];

	memcpy(key, seed, sizeof(key));
	seed[1] = siphash(key, a, strlen(a));
	memcpy(key, seed, sizeof(key));
	return siphash(key, b, strlen(b)) | 1;
}

/* Gives the row copies of the strings. */
static int name_row(struct top_row *row, const char *name, const char *detail)
{
	const size_t name_size = strlen(name) + 1, detail_size = strlen(detail) + 1;
	char *text = malloc(name_size + detail_size);

	if (text == NULL)
		return -ENOMEM;
	row->name = memcpy(text, name, name_size);
	row->detail = memcpy(text + name_size, detail, detail_size);
	free(row->text);
	row->text = text;
	return 0;
}

/* Finds or adds a row. A row that has another name gets this one, unless it is "". */
static int find_row(struct top_sums *s, uint64_t key, const char *name, const char *detail,
		    uint32_t *ret)
{
	struct top_row row = {.key = key};
	int r;

	if (table_get(&s->by_key, key, ret))
		return name[0] == '\0' || strcmp(s->v[*ret].name, name) == 0
			       ? 0
			       : name_row(&s->v[*ret], name, detail);
	r = array_grow(s->v, s->n, s->cap);
	if (r == 0)
		r = table_put(&s->by_key, key, (uint32_t)s->n);
	if (r == 0)
		r = name_row(&row, name, detail);
	if (r < 0)
		return r;
	*ret = (uint32_t)s->n;
	s->v[s->n++] = row;
	return 0;
}

static uint64_t weight(const struct top_time *t)
{
	return t->self_ns + t->total_ns + t->ready_ns + t->waiting_ns;
}

static int largest_first(uint64_t x, uint64_t y)
{
	return x > y ? -1 : x < y;
}

static int heaviest_first(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;

	return largest_first(weight(&x->all), weight(&y->all));
}

/* Drops the rows with the least time if there are too many. */
static int prune(struct top_sums *s)
{
	int r = 0;

	if (s->n <= TOP_ROWS_MAX)
		return 0;
	qsort(s->v, s->n, sizeof(s->v[0]), heaviest_first);
	while (s->n > TOP_ROWS_MAX / 2)
		free(s->v[--s->n].text);
	table_clear(&s->by_key);
	for (uint32_t i = 0; i < s->n && r == 0; i++)
		r = table_put(&s->by_key, s->v[i].key, i);
	return r;
}

/* Adding a chunk. */

/* is_leaf: the function is the leaf of the stack. is_new: the time of the stack is not in t yet. */
static void add_time(struct top_time *t, const struct merge_bar *bar, bool is_leaf, bool is_new)
{
	const uint64_t leaf_ns = is_leaf ? bar->duration_ns : 0;

	if (bar->state == PROFILE_READY) {
		t->ready_ns += leaf_ns;
	} else if (bar->state == PROFILE_WAITING) {
		t->waiting_ns += leaf_ns;
	} else {
		t->self_ns += leaf_ns;
		t->total_ns += is_new ? bar->duration_ns : 0;
	}
}

/* Adds the stack number s->n_stacks to a row. */
static void count(const struct top_sums *s, struct top_row *row, const struct merge_bar *bar,
		  bool is_leaf)
{
	const bool is_new = row->stamp != s->n_stacks;

	/* Of callers, the time in which the function waits in what it calls is of use, too. */
	if (s->kind == TOP_CALLERS && bar->state != PROFILE_RUNNING)
		is_leaf = is_new;
	row->stamp = s->n_stacks;
	add_time(&row->now, bar, is_leaf, is_new);
	add_time(&row->all, bar, is_leaf, is_new);
}

/*
 * Adds the functions of a stack, or the callers of the function whose row is callee. row_of: by
 * frame of the merge, with the row for stacks that have no caller at its end.
 */
static void add_stack(struct top_sums *s, const struct merge *merge, const struct merge_bar *bar,
		      const uint32_t *row_of, uint32_t callee)
{
	for (uint32_t node = bar->node, parent; node != PROFILE_NONE; node = parent) {
		uint32_t row = row_of[merge->nodes[node].frame];

		parent = merge->nodes[node].parent;
		if (s->kind == TOP_CALLERS) {
			if (row != callee)
				continue;
			row = row_of[parent == PROFILE_NONE ? merge->n_frames
							    : merge->nodes[parent].frame];
		}
		count(s, &s->whole, bar, node == bar->node);
		count(s, &s->v[row], bar, node == bar->node);
	}
}

/* Finds the rows of all frames, and of stacks without a caller. */
static int find_functions(const struct top_model *m, struct top_sums *s, uint32_t *row_of)
{
	const struct merge *merge = &m->last;
	int r = 0;

	for (size_t i = 0; i < merge->n_frames && r == 0; i++) {
		const struct merge_frame *f = &merge->frames[i];
		const char *module = f->package == NULL ? "" : f->package;

		r = find_row(s, key_of(m, f->name, module), f->name, module, &row_of[i]);
	}
	return r < 0 ? r : find_row(s, TOP_NO_KEY, "(root)", "", &row_of[merge->n_frames]);
}

/* Adds the stacks of the last chunk, of a thread or of all (TOP_NO_KEY), to a list. */
static int add_functions(const struct top_model *m, struct top_sums *s, uint64_t thread)
{
	const struct merge *merge = &m->last;
	uint32_t *row_of = calloc(merge->n_frames + 1, sizeof(*row_of)), callee = UINT32_MAX;
	int r = row_of == NULL ? -ENOMEM : find_functions(m, s, row_of);

	(void)table_get(&s->by_key, m->chosen_function, &callee);
	for (size_t i = 0; i < merge->n_threads && r == 0; i++) {
		const struct merge_thread *t = &merge->threads[i];

		if (thread != TOP_NO_KEY && key_of(m, t->id, "") != thread)
			continue;
		for (size_t k = t->first_bar; k < t->first_bar + t->n_bars; k++) {
			s->n_stacks++;
			add_stack(s, merge, &merge->bars[k], row_of, callee);
		}
	}
	free(row_of);
	return r;
}

static int add_threads(const struct top_model *m, struct top_sums *s)
{
	const struct merge *merge = &m->last;
	int r = 0;

	for (size_t i = 0; i < merge->n_threads && r == 0; i++) {
		const struct merge_thread *t = &merge->threads[i];
		uint32_t row;

		r = find_row(s, key_of(m, t->id, ""), t->name, t->id, &row);
		for (size_t k = t->first_bar; r == 0 && k < t->first_bar + t->n_bars; k++) {
			s->n_stacks++;
			count(s, &s->whole, &merge->bars[k], true);
			count(s, &s->v[row], &merge->bars[k], true);
		}
	}
	return r;
}

static int add_chosen(struct top_model *m)
{
	m->is_chosen_counted = true;
	return add_functions(m, &m->chosen, m->chosen_thread);
}

void top_model_choose(struct top_model *m, uint64_t thread, uint64_t function)
{
	fini_sums(&m->chosen);
	init_sums(&m->chosen, function == TOP_NO_KEY ? TOP_FUNCTIONS : TOP_CALLERS, m->hash_seed);
	m->chosen_thread = thread;
	m->chosen_function = function;
	m->is_chosen_counted = false;
}

static int add_last(struct top_model *m)
{
	int r = add_functions(m, &m->functions, TOP_NO_KEY);

	if (r == 0)
		r = add_threads(m, &m->threads);
	if (r == 0 && m->is_chosen_counted)
		r = add_chosen(m);
	m->now_ns = m->last.end_ns - m->last.start_ns;
	m->all_ns += m->now_ns;
	m->n_chunks++;
	m->hides_ready |= m->last.hides_ready;
	return r;
}

int top_model_add(struct top_model *m, const struct import_chunk *c)
{
	const struct merge_options options = {
		.demangle = m->demangle,
		.by_function = true,
		.until_ns = UINT64_MAX,
		.hash_seed = m->hash_seed,
	};
	struct top_sums *const sums[] = {&m->functions, &m->threads, &m->chosen};
	int r = 0;

	for (size_t i = 0; i < array_size(sums) && r == 0; i++) {
		r = prune(sums[i]);
		sums[i]->whole.now = (struct top_time){0};
		for (size_t k = 0; k < sums[i]->n; k++)
			sums[i]->v[k].now = (struct top_time){0};
	}
	merge_fini(&m->last);
	merge_init(&m->last, &options);
	if (r == 0)
		r = merge_add(&m->last, c);
	if (r == 0)
		r = merge_finish(&m->last);
	return r < 0 ? r : add_last(m);
}

/* Lists. */

static uint64_t time_in(const struct top_time *t, enum top_column column)
{
	switch (column) {
	case TOP_SELF:
		return t->self_ns;
	case TOP_TOTAL:
		return t->total_ns;
	case TOP_READY:
		return t->ready_ns;
	case TOP_WAITING:
		break;
	}
	return t->waiting_ns;
}

static int compare_rows(const void *a, const void *b, void *ctx)
{
	const struct top_row *x = a, *y = b;
	const struct top_order *order = ctx;
	const int now =
		largest_first(time_in(&x->now, order->column), time_in(&y->now, order->column));
	const int all =
		largest_first(time_in(&x->all, order->column), time_in(&y->all, order->column));
	int r = order->since_start ? all : now;

	if (r == 0)
		r = order->since_start ? now : all;
	if (r == 0)
		r = heaviest_first(x, y);
	if (r == 0)
		r = strcmp(x->name, y->name);
	return r != 0 ? r : strcmp(x->detail, y->detail);
}

static int add_row(struct top_rows *rows, const struct top_row *row)
{
	if (array_grow(rows->v, rows->n, rows->cap) < 0)
		return -ENOMEM;
	rows->v[rows->n++] = *row;
	return 0;
}

static void subtract(struct top_time *t, const struct top_time *part)
{
	t->self_ns -= min_u64(t->self_ns, part->self_ns);
	t->total_ns -= min_u64(t->total_ns, part->total_ns);
	t->ready_ns -= min_u64(t->ready_ns, part->ready_ns);
	t->waiting_ns -= min_u64(t->waiting_ns, part->waiting_ns);
}

/* Adds the row "(others)": the whole minus all rows. */
static int add_others(struct top_rows *rows, const struct top_sums *s)
{
	struct top_row others = s->whole;

	/* A stack counts in the totals of all of its functions, so they do not add up. */
	if (s->kind == TOP_FUNCTIONS)
		others.now.total_ns = others.all.total_ns = 0;
	for (size_t i = 0; i < rows->n; i++) {
		subtract(&others.now, &rows->v[i].now);
		subtract(&others.all, &rows->v[i].all);
	}
	return weight(&others.all) == 0 ? 0 : add_row(rows, &others);
}

int top_model_rows(struct top_model *m, const struct top_sums *sums, struct top_order order,
		   struct top_rows *ret)
{
	int r = 0;

	ret->n = 0;
	if (sums == &m->chosen && !m->is_chosen_counted)
		r = add_chosen(m);
	for (size_t i = 0; i < sums->n && r == 0; i++) {
		/* Leaves out functions that only call others that do not run. */
		if (weight(&sums->v[i].all) > 0)
			r = add_row(ret, &sums->v[i]);
	}
	if (r < 0)
		return r;
	if (ret->n > 0)
		qsort_r(ret->v, ret->n, sizeof(ret->v[0]), compare_rows, &order);
	return add_others(ret, sums);
}

void top_rows_fini(struct top_rows *r)
{
	free(r->v);
	*r = (struct top_rows){0};
}
