#include "daemon/ctl/top/top_model.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"

/* Bits in the key of a cell: enough for more than a chunk of one second can have. */
#define FUNCTION_BITS	22
#define THREADS_KEY_MAX UINT32_C(0x100000)

void top_model_init(struct top_model *m, merge_demangle *demangle, uint64_t hash_seed)
{
	*m = (struct top_model){
		.demangle = demangle,
		.hash_seed = hash_seed,
		.shown_thread = TOP_ALL,
		.shown_function = TOP_OTHERS,
	};
	text_init(&m->text, hash_seed);
	table_init(&m->by_function, hash_seed);
	table_init(&m->by_thread, hash_seed);
	table_init(&m->by_cell, hash_seed);
}

void top_model_fini(struct top_model *m)
{
	text_fini(&m->text);
	free(m->functions);
	free(m->threads);
	free(m->cells);
	table_fini(&m->by_function);
	table_fini(&m->by_thread);
	table_fini(&m->by_cell);
	*m = (struct top_model){0};
}

/* Functions. Strings are interned: equal strings have equal addresses. */

static uint64_t function_key(const char *name, const char *module)
{
	return (uint64_t)(uintptr_t)name * 31 + (uintptr_t)module;
}

/* Adds the function to the table. If its key is taken, the next free key is used. */
static int enter_function(struct top_model *m, uint32_t index)
{
	const struct top_function *f = &m->functions[index];
	uint64_t key = function_key(f->name, f->module);
	uint32_t other;

	while (table_get(&m->by_function, key, &other))
		key++;
	return table_put(&m->by_function, key, index);
}

static uint32_t free_function(const struct top_model *m)
{
	uint32_t i = 0;

	if (m->used_functions == m->n_functions)
		return (uint32_t)m->n_functions;
	while (m->functions[i].name != NULL)
		i++;
	return i;
}

static int find_function(struct top_model *m, const char *name, const char *module, uint32_t *ret)
{
	struct top_function f;
	int r = text_intern(&m->text, name, &f.name);

	if (r == 0)
		r = text_intern(&m->text, module, &f.module);
	if (r < 0)
		return r;
	for (uint64_t key = function_key(f.name, f.module); table_get(&m->by_function, key, ret);
	     key++)
		if (m->functions[*ret].name == f.name && m->functions[*ret].module == f.module)
			return 0;
	if (m->n_functions == TOP_WHOLE)
		return -ENOMEM;
	if (array_grow(m->functions, m->n_functions, m->cap_functions) < 0)
		return -ENOMEM;
	*ret = free_function(m);
	m->functions[*ret] = f;
	m->n_functions += *ret == m->n_functions;
	m->used_functions++;
	return enter_function(m, *ret);
}

/* Threads. */

static uint32_t free_thread(const struct top_model *m)
{
	uint32_t i = 0;

	if (m->used_threads == m->n_threads)
		return (uint32_t)m->n_threads;
	while (m->threads[i].id != NULL)
		i++;
	return i;
}

static int add_thread(struct top_model *m, const char *id, const char *name, uint32_t *ret)
{
	if (m->n_threads == THREADS_KEY_MAX)
		return -ENOMEM;
	if (array_grow(m->threads, m->n_threads, m->cap_threads) < 0)
		return -ENOMEM;
	*ret = free_thread(m);
	m->threads[*ret] = (struct top_thread){.id = id, .name = name};
	m->n_threads += *ret == m->n_threads;
	m->used_threads++;
	return table_put(&m->by_thread, (uintptr_t)id, *ret);
}

static int find_thread(struct top_model *m, const char *raw_id, const char *raw_name, uint32_t *ret)
{
	const char *id, *name;
	int r = text_intern(&m->text, raw_id, &id);

	if (r == 0)
		r = text_intern(&m->text, raw_name, &name);
	/* The first element of the list of threads stands for TOP_ALL. */
	if (r == 0 && m->n_threads == 0)
		r = add_thread(m, "", "", ret);
	if (r != 0)
		return r;
	if (!table_get(&m->by_thread, (uintptr_t)id, ret))
		return add_thread(m, id, name, ret);
	if (name[0] != '\0')
		m->threads[*ret].name = name;
	return 0;
}

/* Cells. */

static uint64_t cell_key(uint32_t thread, uint32_t function, uint32_t caller)
{
	return (uint64_t)thread << 2 * FUNCTION_BITS | (uint64_t)function << FUNCTION_BITS | caller;
}

static const struct top_cell *get_cell(const struct top_model *m, uint32_t thread,
				       uint32_t function, uint32_t caller)
{
	uint32_t i;

	return table_get(&m->by_cell, cell_key(thread, function, caller), &i) ? &m->cells[i] : NULL;
}

static int find_cell(struct top_model *m, uint32_t thread, uint32_t function, uint32_t caller,
		     struct top_cell **ret)
{
	const uint64_t key = cell_key(thread, function, caller);
	uint32_t i;
	int r;

	if (table_get(&m->by_cell, key, &i)) {
		*ret = &m->cells[i];
		return 0;
	}
	if (array_grow(m->cells, m->n_cells, m->cap_cells) < 0)
		return -ENOMEM;
	r = table_put(&m->by_cell, key, (uint32_t)m->n_cells);
	if (r < 0)
		return r;
	*ret = &m->cells[m->n_cells++];
	**ret = (struct top_cell){
		.thread = thread,
		.function = function,
		.caller = caller,
	};
	return 0;
}

static void add_time(struct top_time *t, const struct merge_bar *bar, bool is_leaf, bool is_new)
{
	uint64_t *of_leaf[PROFILE_STATES] = {
		[PROFILE_RUNNING] = &t->self_ns,
		[PROFILE_READY] = &t->ready_ns,
		[PROFILE_WAITING] = &t->waiting_ns,
	};
	uint64_t *of_any[PROFILE_STATES] = {
		[PROFILE_RUNNING] = &t->total_ns,
		[PROFILE_READY] = &t->ready_total_ns,
		[PROFILE_WAITING] = &t->waiting_total_ns,
	};

	*of_leaf[bar->state] += is_leaf ? bar->duration_ns : 0;
	*of_any[bar->state] += is_new ? bar->duration_ns : 0;
}

static int count(struct top_model *m, uint32_t thread, uint32_t function, uint32_t caller,
		 const struct merge_bar *bar, bool is_leaf)
{
	struct top_cell *cell;
	bool is_new;
	int r = find_cell(m, thread, function, caller, &cell);

	if (r < 0)
		return r;
	is_new = cell->stamp != m->n_stacks;
	cell->stamp = m->n_stacks;
	add_time(&cell->now, bar, is_leaf, is_new);
	add_time(&cell->all, bar, is_leaf, is_new);
	return 0;
}

/* Adds a bar to the sums of its functions and callers. function_of: by frame of the merge. */
static int add_bar(struct top_model *m, const struct merge *merge, const struct merge_bar *bar,
		   uint32_t thread, const uint32_t *function_of)
{
	int r;

	m->n_stacks++;
	r = count(m, thread, TOP_WHOLE, TOP_ANY, bar, true);
	for (uint32_t node = bar->node; node != PROFILE_NONE && r == 0;
	     node = merge->nodes[node].parent) {
		const uint32_t parent = merge->nodes[node].parent;
		const uint32_t function = function_of[merge->nodes[node].frame];
		const uint32_t caller =
			parent == PROFILE_NONE ? TOP_ROOT : function_of[merge->nodes[parent].frame];

		r = count(m, thread, function, TOP_ANY, bar, node == bar->node);
		if (r == 0)
			r = count(m, thread, function, caller, bar, node == bar->node);
	}
	return r;
}

/* Dropping what has the least time. */

static uint64_t weight(const struct top_time *t)
{
	return t->self_ns + t->total_ns + t->ready_ns + t->ready_total_ns + t->waiting_ns +
	       t->waiting_total_ns;
}

struct ranked {
	uint64_t weight;
	uint32_t index;
};

static int heaviest_first(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/* Clears is_kept of all elements except the n elements with the largest weights. */
static void keep_first(struct ranked *v, size_t n_ranked, size_t n, bool *is_kept)
{
	qsort(v, n_ranked, sizeof(*v), heaviest_first);
	for (size_t i = n; i < n_ranked; i++)
		is_kept[v[i].index] = false;
}

struct kept {
	struct ranked *ranked; /* room for any of the three lists */
	bool *functions, *threads, *cells;
};

static uint64_t cell_weight(const struct top_model *m, uint32_t thread, uint32_t function)
{
	const struct top_cell *cell = get_cell(m, thread, function, TOP_ANY);

	return cell == NULL ? 0 : weight(&cell->all);
}

static void choose_functions(const struct top_model *m, struct kept *k)
{
	for (uint32_t i = 0; i < m->n_functions; i++) {
		k->functions[i] = m->functions[i].name != NULL;
		k->ranked[i] = (struct ranked){
			i == m->shown_function ? UINT64_MAX : cell_weight(m, TOP_ALL, i), i};
	}
	if (m->used_functions > TOP_FUNCTIONS_MAX)
		keep_first(k->ranked, m->n_functions, TOP_FUNCTIONS_MAX / 2, k->functions);
}

static void choose_threads(const struct top_model *m, struct kept *k)
{
	for (uint32_t i = 0; i < m->n_threads; i++) {
		k->threads[i] = m->threads[i].id != NULL;
		k->ranked[i] = (struct ranked){i == TOP_ALL || i == m->shown_thread
						       ? UINT64_MAX
						       : cell_weight(m, i, TOP_WHOLE),
					       i};
	}
	if (m->used_threads > TOP_THREADS_MAX)
		keep_first(k->ranked, m->n_threads, TOP_THREADS_MAX / 2, k->threads);
}

static bool is_kept_function(const struct kept *k, uint32_t function)
{
	return function == TOP_ANY || function == TOP_ROOT || function == TOP_WHOLE ||
	       k->functions[function];
}

/* Chooses the cells to keep; functions and threads have to be chosen before. */
static void choose_cells(const struct top_model *m, struct kept *k)
{
	size_t n = 0;

	for (uint32_t i = 0; i < m->n_cells; i++) {
		const struct top_cell *c = &m->cells[i];

		k->cells[i] = k->threads[c->thread] && is_kept_function(k, c->function) &&
			      is_kept_function(k, c->caller);
		n += k->cells[i];
		k->ranked[i] = (struct ranked){c->function == TOP_WHOLE ? UINT64_MAX
					       : k->cells[i]		? weight(&c->all)
									: 0,
					       i};
	}
	if (n > TOP_CELLS_MAX)
		keep_first(k->ranked, m->n_cells, TOP_CELLS_MAX / 2, k->cells);
}

/* Copies the strings of all functions and threads that are left to a new text. */
static int move_strings(struct top_model *m, struct text *text)
{
	int r = 0;

	for (size_t i = 0; i < m->n_functions && r == 0; i++) {
		struct top_function *f = &m->functions[i];

		if (f->name == NULL)
			continue;
		r = text_intern(text, f->name, &f->name);
		if (r == 0)
			r = text_intern(text, f->module, &f->module);
	}
	for (size_t i = TOP_ALL + 1; i < m->n_threads && r == 0; i++) {
		struct top_thread *t = &m->threads[i];

		if (t->id == NULL)
			continue;
		r = text_intern(text, t->id, &t->id);
		if (r == 0)
			r = text_intern(text, t->name, &t->name);
	}
	return r;
}

static int enter_all(struct top_model *m)
{
	int r = 0;

	table_clear(&m->by_function);
	table_clear(&m->by_thread);
	table_clear(&m->by_cell);
	for (uint32_t i = 0; i < m->n_functions && r == 0; i++)
		if (m->functions[i].name != NULL)
			r = enter_function(m, i);
	for (uint32_t i = 0; i < m->n_threads && r == 0; i++)
		if (m->threads[i].id != NULL)
			r = table_put(&m->by_thread, (uintptr_t)m->threads[i].id, i);
	for (uint32_t i = 0; i < m->n_cells && r == 0; i++)
		r = table_put(
			&m->by_cell,
			cell_key(m->cells[i].thread, m->cells[i].function, m->cells[i].caller), i);
	return r;
}

static int drop_others(struct top_model *m, const struct kept *k)
{
	struct text text;
	size_t n = 0;
	int r;

	for (size_t i = 0; i < m->n_functions; i++) {
		if (k->functions[i] || m->functions[i].name == NULL)
			continue;
		m->functions[i].name = NULL;
		m->used_functions--;
	}
	for (size_t i = 0; i < m->n_threads; i++) {
		if (k->threads[i] || m->threads[i].id == NULL)
			continue;
		m->threads[i].id = NULL;
		m->used_threads--;
	}
	for (size_t i = 0; i < m->n_cells; i++)
		if (k->cells[i])
			m->cells[n++] = m->cells[i];
	m->n_cells = n;
	text_init(&text, m->hash_seed);
	r = move_strings(m, &text);
	text_fini(&m->text);
	m->text = text;
	return r < 0 ? r : enter_all(m);
}

static int prune(struct top_model *m)
{
	const size_t n = m->n_cells + m->n_functions + m->n_threads;
	struct kept k = {
		.ranked = calloc(n + 1, sizeof(*k.ranked)),
		.functions = calloc(m->n_functions + 1, sizeof(bool)),
		.threads = calloc(m->n_threads + 1, sizeof(bool)),
		.cells = calloc(m->n_cells + 1, sizeof(bool)),
	};
	int r = -ENOMEM;

	if (k.ranked != NULL && k.functions != NULL && k.threads != NULL && k.cells != NULL) {
		choose_functions(m, &k);
		choose_threads(m, &k);
		choose_cells(m, &k);
		r = drop_others(m, &k);
	}
	free(k.ranked);
	free(k.functions);
	free(k.threads);
	free(k.cells);
	return r;
}

/* Adds the merge of one chunk to the sums. */
static int add_all(struct top_model *m, const struct merge *merge, uint32_t *function_of,
		   uint32_t *thread_of)
{
	int r = 0;

	for (size_t i = 0; i < merge->n_frames && r == 0; i++) {
		const struct merge_frame *f = &merge->frames[i];

		r = find_function(m, f->name, f->package == NULL ? "" : f->package,
				  &function_of[i]);
	}
	for (size_t i = 0; i < merge->n_threads && r == 0; i++)
		r = find_thread(m, merge->threads[i].id, merge->threads[i].name, &thread_of[i]);
	for (size_t i = 0; i < merge->n_bars && r == 0; i++) {
		const struct merge_bar *bar = &merge->bars[i];

		r = add_bar(m, merge, bar, TOP_ALL, function_of);
		if (r == 0)
			r = add_bar(m, merge, bar, thread_of[bar->thread], function_of);
	}
	return r;
}

static int add_merge(struct top_model *m, const struct merge *merge)
{
	uint32_t *function_of = calloc(merge->n_frames + 1, sizeof(*function_of));
	uint32_t *thread_of = calloc(merge->n_threads + 1, sizeof(*thread_of));
	int r = -ENOMEM;

	if (function_of != NULL && thread_of != NULL)
		r = add_all(m, merge, function_of, thread_of);
	free(function_of);
	free(thread_of);
	m->now_ns = merge->end_ns - merge->start_ns;
	m->all_ns += m->now_ns;
	m->n_chunks++;
	m->hides_ready |= merge->hides_ready;
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
	struct merge merge;
	int r = 0;

	if (m->used_functions > TOP_FUNCTIONS_MAX || m->used_threads > TOP_THREADS_MAX ||
	    m->n_cells > TOP_CELLS_MAX)
		r = prune(m);
	for (size_t i = 0; i < m->n_cells; i++)
		m->cells[i].now = (struct top_time){0};
	merge_init(&merge, &options);
	if (r == 0)
		r = merge_add(&merge, c);
	if (r == 0)
		r = merge_finish(&merge);
	if (r == 0)
		r = add_merge(m, &merge);
	merge_fini(&merge);
	return r;
}

/* Lists. */

static uint64_t time_in(const struct top_time *t, enum top_column column, bool is_callers)
{
	switch (column) {
	case TOP_SELF:
		return t->self_ns;
	case TOP_TOTAL:
		return t->total_ns;
	case TOP_READY:
		return is_callers ? t->ready_total_ns : t->ready_ns;
	case TOP_WAITING:
		break;
	}
	return is_callers ? t->waiting_total_ns : t->waiting_ns;
}

struct comparison {
	struct top_order order;
	bool is_callers;
};

static int largest_first(uint64_t x, uint64_t y)
{
	return x > y ? -1 : x < y;
}

static int compare_rows(const void *a, const void *b, void *ctx)
{
	const struct top_row *x = a, *y = b;
	const struct comparison *c = ctx;
	const enum top_column column = c->order.column;
	const int now = largest_first(time_in(&x->now, column, c->is_callers),
				      time_in(&y->now, column, c->is_callers));
	const int all = largest_first(time_in(&x->all, column, c->is_callers),
				      time_in(&y->all, column, c->is_callers));
	int r = c->order.since_start ? all : now;

	if (r == 0)
		r = c->order.since_start ? now : all;
	if (r == 0)
		r = largest_first(weight(&x->all), weight(&y->all));
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
	t->ready_total_ns -= min_u64(t->ready_total_ns, part->ready_total_ns);
	t->waiting_ns -= min_u64(t->waiting_ns, part->waiting_ns);
	t->waiting_total_ns -= min_u64(t->waiting_total_ns, part->waiting_total_ns);
}

/*
 * Sorts the rows, and adds the row of others: whole minus all rows. adds_up: the totals of the
 * rows add up to that of the whole; if not, the row of others gets no totals.
 */
static int finish(struct top_rows *rows, const struct top_cell *whole, bool adds_up,
		  struct comparison c)
{
	struct top_row others = {.index = TOP_OTHERS, .name = "(others)", .detail = ""};

	if (rows->n > 0)
		qsort_r(rows->v, rows->n, sizeof(rows->v[0]), compare_rows, &c);
	if (whole == NULL)
		return 0;
	others.now = whole->now;
	others.all = whole->all;
	if (!adds_up) {
		others.now.total_ns = others.now.ready_total_ns = others.now.waiting_total_ns = 0;
		others.all.total_ns = others.all.ready_total_ns = others.all.waiting_total_ns = 0;
	}
	for (size_t i = 0; i < rows->n; i++) {
		subtract(&others.now, &rows->v[i].now);
		subtract(&others.all, &rows->v[i].all);
	}
	return weight(&others.all) == 0 ? 0 : add_row(rows, &others);
}

int top_model_functions(const struct top_model *m, uint32_t thread, struct top_order order,
			struct top_rows *ret)
{
	int r = 0;

	ret->n = 0;
	for (size_t i = 0; i < m->n_cells && r == 0; i++) {
		const struct top_cell *c = &m->cells[i];

		/* Leaves out functions that only call others that do not run. */
		if (c->thread != thread || c->caller != TOP_ANY || c->function == TOP_WHOLE ||
		    (c->all.total_ns == 0 && c->all.ready_ns == 0 && c->all.waiting_ns == 0))
			continue;
		r = add_row(ret,
			    &(struct top_row){c->function, m->functions[c->function].name,
					      m->functions[c->function].module, c->now, c->all});
	}
	return r < 0 ? r
		     : finish(ret, get_cell(m, thread, TOP_WHOLE, TOP_ANY), false,
			      (struct comparison){order, false});
}

int top_model_threads(const struct top_model *m, struct top_order order, struct top_rows *ret)
{
	int r = 0;

	ret->n = 0;
	for (size_t i = 0; i < m->n_cells && r == 0; i++) {
		const struct top_cell *c = &m->cells[i];
		const struct top_thread *t = &m->threads[c->thread];

		if (c->thread == TOP_ALL || c->function != TOP_WHOLE)
			continue;
		r = add_row(ret, &(struct top_row){c->thread, t->name, t->id, c->now, c->all});
	}
	return r < 0 ? r
		     : finish(ret, get_cell(m, TOP_ALL, TOP_WHOLE, TOP_ANY), true,
			      (struct comparison){order, false});
}

int top_model_callers(const struct top_model *m, uint32_t thread, uint32_t function,
		      struct top_order order, struct top_rows *ret)
{
	int r = 0;

	ret->n = 0;
	for (size_t i = 0; i < m->n_cells && r == 0; i++) {
		const struct top_cell *c = &m->cells[i];
		struct top_row row = {c->caller, "(root)", "", c->now, c->all};

		if (c->thread != thread || c->function != function || c->caller == TOP_ANY)
			continue;
		if (c->caller == TOP_ROOT) {
			row.index = TOP_OTHERS;
		} else {
			row.name = m->functions[c->caller].name;
			row.detail = m->functions[c->caller].module;
		}
		r = add_row(ret, &row);
	}
	return r < 0 ? r
		     : finish(ret, get_cell(m, thread, function, TOP_ANY), true,
			      (struct comparison){order, true});
}

void top_rows_fini(struct top_rows *r)
{
	free(r->v);
	*r = (struct top_rows){0};
}

void top_model_thread_time(const struct top_model *m, uint32_t thread, struct top_time *ret_now,
			   struct top_time *ret_all)
{
	static const struct top_time none;
	const struct top_cell *c = get_cell(m, thread, TOP_WHOLE, TOP_ANY);

	*ret_now = c == NULL ? none : c->now;
	*ret_all = c == NULL ? none : c->all;
}
