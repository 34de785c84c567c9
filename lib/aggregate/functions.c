#include "lib/aggregate/functions.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/aggregate/names.h"
#include "lib/aggregate/table_cells.h"
#include "lib/base/array.h"
#include "lib/base/escape.h"
#include "lib/base/short_names.h"
#include "lib/base/utf8.h"

/* Width of the name column. A longer name moves its module to the right. */
#define NAME_COLUMNS 32

/* A shorter time is shown as 0.00 s. */
#define SHOWN_NS (5 * NS_PER_MS)

void functions_init(struct functions *f, uint64_t hash_seed)
{
	*f = (struct functions){0};
	string_pool_init(&f->text, hash_seed);
	table_init(&f->by_name, hash_seed);
	table_init(&f->by_symbol, hash_seed);
	programs_init(&f->programs, hash_seed);
}

void functions_fini(struct functions *f)
{
	if (f == NULL)
		return;
	string_pool_fini(&f->text);
	free(f->rows);
	free(f->symbols);
	table_fini(&f->by_name);
	table_fini(&f->by_symbol);
	programs_fini(&f->programs);
	functions_init(f, f->by_name.seed);
}

static uint64_t key_of(const char *name, const char *module)
{
	return (uint64_t)(uintptr_t)name * 31 + (uintptr_t)module;
}

/* name and module are interned, so equal strings are equal pointers. */
static int find_row(struct functions *f, const char *name, const char *module, uint32_t *ret)
{
	uint64_t key = key_of(name, module);
	int r;

	/* If another row has the key, this row has the next free key. */
	for (; table_get(&f->by_name, key, ret); key++)
		if (f->rows[*ret].name == name && f->rows[*ret].module == module)
			return 0;
	if (array_grow(f->rows, f->n, f->cap) < 0)
		return -ENOMEM;
	r = table_put(&f->by_name, key, (uint32_t)f->n);
	if (r < 0)
		return r;
	*ret = (uint32_t)f->n++;
	f->rows[*ret] = (struct functions_row){.name = name, .module = module};
	return 0;
}

static int row_of_name(struct functions *f, const char *symbol, const char *module, uint32_t *ret)
{
	char demangled[NAME_SIZE];
	const char *name = symbol;
	int r = 0;

	if (unwind_demangle(symbol, true, demangled, sizeof(demangled)))
		r = string_pool_intern(&f->text, demangled, &name);
	return r != 0 ? r : find_row(f, name, module, ret);
}

/* Demangles each symbol once: it costs more than all else of a frame. */
static int row_of_symbol(struct functions *f, const char *symbol, const char *module, uint32_t *ret)
{
	uint64_t key = key_of(symbol, module);
	uint32_t i;
	int r;

	for (; table_get(&f->by_symbol, key, &i); key++) {
		*ret = f->symbols[i].row;
		if (f->symbols[i].symbol == symbol && f->symbols[i].module == module)
			return 0;
	}
	r = row_of_name(f, symbol, module, ret);
	if (r == 0 && array_grow(f->symbols, f->n_symbols, f->cap_symbols) < 0)
		r = -ENOMEM;
	if (r == 0)
		r = table_put(&f->by_symbol, key, (uint32_t)f->n_symbols);
	if (r == 0)
		f->symbols[f->n_symbols++] = (struct functions_symbol){symbol, module, *ret};
	return r;
}

static int row_of_frame(struct functions *f, const struct profile_frame *frame, uint32_t *ret)
{
	const char *path = frame->package != NULL ? frame->package : "";
	const char *function = frame->function;
	const char *symbol, *module;
	char unnamed[NAME_SIZE + 2];
	int r;

	if (function == NULL) {
		(void)snprintf(unnamed, sizeof(unnamed), "[%s]",
			       path[0] != '\0' ? names_base(path) : "unknown");
		function = unnamed;
	}
	r = string_pool_intern(&f->text, function, &symbol);
	if (r == 0)
		r = string_pool_intern(&f->text, path, &module);
	return r != 0 ? r : row_of_symbol(f, symbol, module, ret);
}

/* Orders by the time that decides which rows are kept, largest first. */
static int compare_weight(const void *a, const void *b)
{
	const struct functions_row *x = a, *y = b;
	uint64_t of_x = x->total_ns + x->ready_ns + x->waiting_ns;
	uint64_t of_y = y->total_ns + y->ready_ns + y->waiting_ns;

	return of_x > of_y ? -1 : of_x < of_y;
}

/* Keeps FUNCTIONS_MAX / 2 rows and the strings that these need. */
static int drop_smallest_rows(struct functions *f)
{
	struct functions kept;
	int r = 0;

	qsort(f->rows, f->n, sizeof(f->rows[0]), compare_weight);
	functions_init(&kept, f->by_name.seed);
	kept.n_stacks = f->n_stacks;
	kept.others_self_ns = f->others_self_ns;
	kept.others_ready_ns = f->others_ready_ns;
	kept.others_waiting_ns = f->others_waiting_ns;
	kept.hides_ready = f->hides_ready;
	kept.n_others = f->n_others;
	for (size_t i = 0; i < f->n && r == 0; i++) {
		const struct functions_row *row = &f->rows[i];
		const char *name, *module;
		uint32_t index;

		if (i >= FUNCTIONS_MAX / 2) {
			kept.others_self_ns += row->self_ns;
			kept.others_ready_ns += row->ready_ns;
			kept.others_waiting_ns += row->waiting_ns;
			kept.n_others++;
			continue;
		}
		r = string_pool_intern(&kept.text, row->name, &name);
		if (r == 0)
			r = string_pool_intern(&kept.text, row->module, &module);
		if (r == 0)
			r = find_row(&kept, name, module, &index);
		if (r == 0) {
			kept.rows[index] = *row;
			kept.rows[index].name = name;
			kept.rows[index].module = module;
		}
	}
	if (r < 0) {
		functions_fini(&kept);
		return r;
	}
	kept.programs = f->programs;
	programs_init(&f->programs, f->by_name.seed);
	functions_fini(f);
	*f = kept;
	return 0;
}

/* The rows of the functions at each frame. */
struct rows_of {
	uint32_t *frames;		   /* by frame: the row of its function */
	const struct profile_lines *lines; /* by frame; NULL: no function is inlined */
	uint32_t *inlined;		   /* by index of an inlined function: its row */
};

/* Adds the running time of a stack to the total time of a function, once. */
static void add_total(struct functions *f, uint32_t index, const struct stacks_time *time)
{
	struct functions_row *row = &f->rows[index];

	if (row->stamp != f->n_stacks)
		row->total_ns += time->ns[PROFILE_RUNNING];
	row->stamp = f->n_stacks;
}

/* Adds the time of one stack. */
static void add_stack(struct functions *f, const struct stacks *s, const struct rows_of *rows,
		      const struct stacks_time *time)
{
	const uint32_t first = s->nodes[time->node].frame;
	const bool is_inlined = rows->lines != NULL && rows->lines[first].n > 0;
	struct functions_row *leaf = &f->rows[is_inlined ? rows->inlined[rows->lines[first].first]
							 : rows->frames[first]];

	leaf->self_ns += time->ns[PROFILE_RUNNING];
	leaf->ready_ns += time->ns[PROFILE_READY];
	leaf->waiting_ns += time->ns[PROFILE_WAITING];
	f->n_stacks++;
	for (uint32_t node = time->node; node != PROFILE_NONE; node = s->nodes[node].parent) {
		const uint32_t frame = s->nodes[node].frame;
		const struct profile_lines *lines =
			rows->lines != NULL ? &rows->lines[frame] : NULL;

		for (uint32_t i = 0; lines != NULL && i < lines->n; i++)
			add_total(f, rows->inlined[lines->first + i], time);
		add_total(f, rows->frames[frame], time);
	}
}

int functions_add(struct functions *f, struct stacks *s, const struct profile_frame *frames)
{
	return functions_add_inlined(f, s, frames, NULL, NULL, 0);
}

/* Finds the rows of n frames; the caller frees *ret, also after an error. */
static int find_rows(struct functions *f, const struct profile_frame *frames, size_t n,
		     uint32_t **ret)
{
	int r = 0;

	*ret = calloc(n + 1, sizeof(**ret));
	if (*ret == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n && r == 0; i++)
		r = row_of_frame(f, &frames[i], &(*ret)[i]);
	return r;
}

int functions_add_inlined(struct functions *f, struct stacks *s, const struct profile_frame *frames,
			  const struct profile_lines *lines, const struct profile_frame *inlined,
			  size_t n_inlined)
{
	struct rows_of rows = {.lines = lines};
	int r = 0;

	if (f->n > FUNCTIONS_MAX || f->n_symbols > FUNCTIONS_MAX)
		r = drop_smallest_rows(f);
	if (r < 0 || s->n_frames == 0)
		return r;
	r = find_rows(f, frames, s->n_frames, &rows.frames);
	if (r == 0)
		r = find_rows(f, inlined, n_inlined, &rows.inlined);
	for (size_t i = 0; i < s->n_times && r == 0; i++) {
		struct stacks_time *time = &s->times[i];

		if (time->ns[PROFILE_RUNNING] == 0 && time->ns[PROFILE_READY] == 0 &&
		    time->ns[PROFILE_WAITING] == 0)
			continue;
		add_stack(f, s, &rows, time);
		memset(time->ns, 0, sizeof(time->ns));
	}
	free(rows.frames);
	free(rows.inlined);
	return r;
}

static int compare_shown(const void *a, const void *b)
{
	const struct functions_row *x = a, *y = b;
	int r;

	if (x->self_ns != y->self_ns)
		return x->self_ns > y->self_ns ? -1 : 1;
	if (x->ready_ns != y->ready_ns)
		return x->ready_ns > y->ready_ns ? -1 : 1;
	if (x->waiting_ns != y->waiting_ns)
		return x->waiting_ns > y->waiting_ns ? -1 : 1;
	if (x->total_ns != y->total_ns)
		return x->total_ns > y->total_ns ? -1 : 1;
	r = strcmp(x->name, y->name);
	return r != 0 ? r : strcmp(x->module, y->module);
}

static double seconds(uint64_t ns)
{
	return (double)ns / (double)NS_PER_SEC;
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole == 0 ? 0 : 100 * (double)part / (double)whole;
}

/* Stores the next character of *s in a form that is safe, and moves *s. Returns its columns. */
static size_t next_text(const char **s, char ret[ESCAPE_MAX + 1])
{
	const size_t n = utf8_length(*s);
	size_t size;

	if (n == 0)
		return (size_t)snprintf(ret, ESCAPE_MAX + 1, "\\x%02x", (uint8_t) * (*s)++);
	size = escape_next(s, ret);
	ret[size] = '\0';
	return size > n ? size : 1;
}

size_t functions_write_name(const char *s, size_t max_columns, FILE *out)
{
	char character[ESCAPE_MAX + 1];
	size_t columns = 0;

	while (*s != '\0') {
		if (columns >= max_columns) {
			(void)fputs("...", out);
			return columns + 3;
		}
		columns += next_text(&s, character);
		(void)fputs(character, out);
	}
	return columns;
}

/* Returns the bytes of the name before it is cut off. */
static size_t bytes_before_cut(const char *name)
{
	char character[ESCAPE_MAX + 1];
	const char *s = name;

	for (size_t columns = 0; *s != '\0' && columns < FUNCTIONS_NAME_COLUMNS;)
		columns += next_text(&s, character);
	return (size_t)(s - name);
}

static void limit_columns(struct functions_label *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const size_t bytes = bytes_before_cut(v[i].name);

		v[i].max_columns = FUNCTIONS_NAME_COLUMNS;
		for (size_t j = 0; j < n && v[i].name[bytes] != '\0'; j++)
			if (strcmp(v[i].name, v[j].name) != 0 &&
			    strncmp(v[i].name, v[j].name, bytes) == 0)
				v[i].max_columns = SIZE_MAX;
	}
}

int functions_label(const char *const *names, size_t n, bool is_full, struct string_pool *text,
		    struct functions_label *ret)
{
	const char **shown = calloc(n + 1, sizeof(*shown));
	int r = shown == NULL ? -ENOMEM : 0;

	if (r == 0)
		r = short_names_or_full(names, n, is_full, text, shown);
	for (size_t i = 0; i < n && r == 0; i++)
		ret[i] = (struct functions_label){shown[i], SIZE_MAX};
	if (r == 0 && !is_full)
		limit_columns(ret, n);
	free(shown);
	return r;
}

/* What the rows have in common. */
struct shown {
	uint64_t running_ns, ready_ns, waiting_ns; /* sums over all functions */
	bool with_ready;			   /* there is a column READY */
};

static void write_times(const struct functions_row *row, const struct shown *shown, FILE *out)
{
	table_cells_share(row->self_ns, shown->running_ns, out);
	table_cells_share(row->total_ns, shown->running_ns, out);
	if (shown->with_ready)
		table_cells_time(row->ready_ns, out);
	table_cells_time(row->waiting_ns, out);
}

static void write_row(const struct functions_row *row, const struct shown *shown,
		      const struct functions_label *label, FILE *out)
{
	size_t columns;

	write_times(row, shown, out);
	(void)fputs("  ", out);
	columns = functions_write_name(label->name, label->max_columns, out);
	if (row->module[0] != '\0') {
		(void)fprintf(out, "%*s",
			      (int)(columns < NAME_COLUMNS ? NAME_COLUMNS - columns + 2 : 2), "");
		(void)functions_write_name(names_base(row->module), FUNCTIONS_NAME_COLUMNS, out);
	}
	(void)fputc('\n', out);
}

static int write_shown(const struct functions *f, const struct functions_row *rows, size_t n,
		       const struct shown *shown, bool full_names, FILE *out)
{
	struct functions_label *labels = calloc(n + 1, sizeof(*labels));
	const char **names = calloc(n + 1, sizeof(*names));
	struct string_pool text;
	int r = -ENOMEM;

	string_pool_init(&text, f->by_name.seed);
	for (size_t i = 0; i < n && names != NULL; i++)
		names[i] = rows[i].name;
	if (labels != NULL && names != NULL)
		r = functions_label(names, n, full_names, &text, labels);
	for (size_t i = 0; i < n && r == 0; i++)
		write_row(&rows[i], shown, &labels[i], out);
	string_pool_fini(&text);
	free(names);
	free(labels);
	return r;
}

static void write_others(const struct functions *f, const struct functions_row *hidden,
			 size_t n_hidden, const struct shown *shown, FILE *out)
{
	struct functions_row sum = {
		.name = "",
		.module = "",
		.self_ns = f->others_self_ns,
		.ready_ns = f->others_ready_ns,
		.waiting_ns = f->others_waiting_ns,
	};
	uint64_t n = f->n_others + n_hidden;

	for (size_t i = 0; i < n_hidden; i++) {
		sum.self_ns += hidden[i].self_ns;
		sum.ready_ns += hidden[i].ready_ns;
		sum.waiting_ns += hidden[i].waiting_ns;
	}
	if (n == 0)
		return;
	write_times(&sum, shown, out);
	(void)fprintf(out, "  (%" PRIu64 " other function%s)\n", n, n == 1 ? "" : "s");
}

static int compare_off_cpu(const void *a, const void *b)
{
	const struct functions_row *x = a, *y = b;
	uint64_t of_x = x->ready_ns + x->waiting_ns, of_y = y->ready_ns + y->waiting_ns;

	if (of_x != of_y)
		return of_x > of_y ? -1 : 1;
	return compare_shown(a, b);
}

/*
 * Moves the rows that are shown to the front: three quarters of them are those with the
 * most self time, one quarter those with the most ready and waiting time. So the table of
 * a busy program also shows where the program waits.
 */
static void move_shown_to_front(struct functions_row *rows, size_t n, size_t max_rows)
{
	size_t hottest = max_rows - max_rows / 4;

	qsort(rows, n, sizeof(rows[0]), compare_shown);
	if (n <= max_rows)
		return;
	qsort(rows + hottest, n - hottest, sizeof(rows[0]), compare_off_cpu);
	qsort(rows, max_rows, sizeof(rows[0]), compare_shown);
}

/* Writes the lines above the rows. */
static void write_head(const struct functions *f, const struct shown *shown, FILE *out)
{
	(void)fprintf(out, "Hottest functions. CPU time %.2f s, ", seconds(shown->running_ns));
	if (shown->with_ready)
		(void)fprintf(out, "ready %.2f s, ", seconds(shown->ready_ns));
	(void)fprintf(out,
		      "waiting %.2f s (sum over all threads).\n"
		      "SELF: CPU time in the function itself; TOTAL: with the functions that it "
		      "called;\n",
		      seconds(shown->waiting_ns));
	if (shown->with_ready)
		(void)fputs("READY: time in the function, runnable but without a processor;\n",
			    out);
	(void)fprintf(out, "WAITING: time in the function, %s.\n\n",
		      f->hides_ready ? "blocked or without a processor (waiting or ready)"
				     : "blocked");
	(void)fprintf(out, "%11s  %6s%11s  %6s", "SELF", "", "TOTAL", "");
	if (shown->with_ready)
		(void)fprintf(out, "%11s", "READY");
	(void)fprintf(out, "%11s  %-*s  %s\n", "WAITING", NAME_COLUMNS, "FUNCTION", "MODULE");
}

/* The functions in which interpreters run the functions of their languages. */
static const struct {
	const char *function, *language;
} interpreters[] = {
	{"_PyEval_EvalFrameDefault", "Python"},
	{"PyEval_EvalFrameEx", "Python"},
	{"vm_exec_core", "Ruby"},
	{"rb_vm_exec", "Ruby"},
	{"execute_ex", "PHP"},
	{"Perl_runops_standard", "Perl"},
	{"luaV_execute", "Lua"},
};

/* Below this percentage of the CPU time nothing is said about names. */
#define HINT_PERCENT 50

static const char *interpreted(const struct functions_row *row)
{
	for (size_t i = 0; i < array_size(interpreters); i++)
		if (strcmp(row->name, interpreters[i].function) == 0)
			return interpreters[i].language;
	return NULL;
}

/* Says in a line why most of the time is under names that are not those of the program. */
static void write_hint(const struct functions *f, uint64_t running_ns, FILE *out)
{
	uint64_t nameless_ns = 0, interpreted_ns = 0;
	const char *language = NULL;

	for (size_t i = 0; i < f->n; i++) {
		const struct functions_row *row = &f->rows[i];

		if (row->module[0] == '\0' && strcmp(row->name, "[unknown]") == 0)
			nameless_ns += row->self_ns;
		if (row->total_ns > interpreted_ns && interpreted(row) != NULL) {
			interpreted_ns = row->total_ns;
			language = interpreted(row);
		}
	}
	if (running_ns > 0 && percent(nameless_ns, running_ns) >= HINT_PERCENT)
		(void)fprintf(
			out,
			"%.0f %% of the CPU time is in code that was generated at run time. It "
			"has names if the program\nwrites /tmp/perf-PID.map: node "
			"--perf-basic-prof, java -XX:+PreserveFramePointer and jcmd PID\n"
			"Compiler.perfmap, DOTNET_PerfMapEnabled=1.\n",
			percent(nameless_ns, running_ns));
	else if (running_ns > 0 && percent(interpreted_ns, running_ns) >= HINT_PERCENT)
		(void)fprintf(
			out,
			"%.0f %% of the CPU time is in the interpreter of %s, whose functions "
			"are not shown by name.\n",
			percent(interpreted_ns, running_ns), language);
}

int functions_write(const struct functions *f, size_t max_rows, bool full_names, FILE *out)
{
	struct functions_row *rows = calloc(f->n + 1, sizeof(rows[0]));
	struct shown shown = {
		.running_ns = f->others_self_ns,
		.ready_ns = f->others_ready_ns,
		.waiting_ns = f->others_waiting_ns,
	};
	size_t n = 0, n_shown;
	int r;

	if (rows == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < f->n; i++) {
		const struct functions_row *row = &f->rows[i];

		/* A function that only called functions that waited has no time. */
		if (row->total_ns == 0 && row->ready_ns == 0 && row->waiting_ns == 0)
			continue;
		rows[n++] = *row;
		shown.running_ns += row->self_ns;
		shown.ready_ns += row->ready_ns;
		shown.waiting_ns += row->waiting_ns;
	}
	shown.with_ready = shown.ready_ns >= SHOWN_NS;
	n_shown = min_size(n, max_rows);
	move_shown_to_front(rows, n, max_rows);
	r = programs_write(&f->programs, max_rows, shown.with_ready, out);
	write_head(f, &shown, out);
	if (r == 0)
		r = write_shown(f, rows, n_shown, &shown, full_names, out);
	write_others(f, rows + n_shown, n - n_shown, &shown, out);
	write_hint(f, shown.running_ns, out);
	free(rows);
	if (r == 0 && (fflush(out) != 0 || ferror(out)))
		r = -EIO;
	return r;
}
