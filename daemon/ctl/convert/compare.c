#include "daemon/ctl/convert/compare.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/common/log.h"
#include "daemon/common/option_fault.h"
#include "daemon/ctl/convert/selection.h"
#include "lib/aggregate/functions.h"
#include "lib/base/util.h"
#include "proto/export/compare.h"
#include "proto/export/html/html.h"

enum {
	TO = SELECTION_END,
	MAP,
	NAMES,
};

/* The most --map. */
#define MAPS_MAX 32

/* Rows of the table: what fits on a screen with the heading. */
#define ROWS 30

/* Percentage points. A smaller difference would be shown as 0.0. */
#define MIN_POINTS 0.05

/* Width of the column of functions. Longer names push the module to the right. */
#define NAME_COLUMNS 40

#define RED  "\033[31m"
#define BLUE "\033[34m"
#define OFF  "\033[0m"

const char compare_help[] =
	"\n"
	"compare A B  show which functions take a larger or a smaller share of the\n"
	"             running time in B than in A; A and B are files or directories\n"
	"             as for convert\n"
	"\n"
	"  -o OUT, --to FORMAT   table (default), html, or folded: both counts, for\n"
	"                        flamegraph.pl\n"
	"  --names short|full    table: C++ and Rust names without or with template\n"
	"                        arguments and parameters (default: short)\n"
	"  --map A=B             module A of one profile is module B of the other\n"
	"  --from S, --until S   compare only these seconds of A and of B\n"
	"  --filter GLOB, --state STATE   as for convert (default: running)\n";

struct compare_table {
	enum merge_states states; /* whose time is compared */
	bool has_colours;	  /* growth in red, shrinkage in blue */
	bool full_names;
	uint64_t hash_seed;
};

struct row {
	const struct compare_function *function;
	double percents[COMPARE_SIDES];
	double points; /* B - A */
};

static double magnitude(double points)
{
	return points < 0 ? -points : points;
}

static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	const double p = magnitude(x->points), q = magnitude(y->points);
	int r;

	if (p < q || p > q)
		return p > q ? -1 : 1;
	r = strcmp(x->function->name, y->function->name);
	if (r != 0 || x->function->package == NULL || y->function->package == NULL)
		return r;
	return strcmp(x->function->package, y->function->package);
}

static const char *time_word(enum merge_states states)
{
	switch (states) {
	case MERGE_RUNNING:
		return "ran";
	case MERGE_READY:
		return "were ready";
	case MERGE_WAITING:
		return "waited";
	case MERGE_ALL:
		break;
	}
	return "ran, were ready or waited";
}

static void write_head(const struct compare_table *t, const struct compare *c, FILE *out)
{
	const char *word = time_word(t->states);

	for (unsigned int side = 0; side < COMPARE_SIDES; side++) {
		const double total_s = (double)c->total_ns[side] / (double)NS_PER_SEC;
		const double lasts_s = (double)c->duration_ns[side] / (double)NS_PER_SEC;

		(void)fprintf(out, "%c  ", "AB"[side]);
		(void)functions_write_name(c->names[side], FUNCTIONS_NAME_COLUMNS, out);
		(void)fprintf(out,
			      ": threads %s for %.2f s within %.2f s, "
			      "%.2f s a second\n",
			      word, total_s, lasts_s, lasts_s > 0 ? total_s / lasts_s : 0);
	}
	(void)fprintf(out,
		      "A and B are percent of the time that the threads of that "
		      "side %s, in the\nfunction itself. CHANGE is B - A, in "
		      "percentage points.\n\n"
		      "%7s %7s %7s  %-*s  %s\n",
		      word, "A", "B", "CHANGE", NAME_COLUMNS, "FUNCTION", "MODULE");
}

static void write_percent(double percent, FILE *out)
{
	if (percent > 0)
		(void)fprintf(out, "%6.1f%% ", percent);
	else
		(void)fprintf(out, "%7s ", "-");
}

static void write_row(const struct row *row, const struct functions_label *label, bool has_colours,
		      FILE *out)
{
	const struct compare_function *f = row->function;
	size_t columns;

	for (unsigned int side = 0; side < COMPARE_SIDES; side++)
		write_percent(row->percents[side], out);
	if (has_colours)
		(void)fputs(row->points > 0 ? RED : BLUE, out);
	(void)fprintf(out, "%+7.1f", row->points);
	if (has_colours)
		(void)fputs(OFF, out);
	(void)fputs("  ", out);
	columns = functions_write_name(label->name, label->max_columns, out);
	if (f->package != NULL) {
		(void)fprintf(out, "%*s",
			      columns < NAME_COLUMNS ? (int)(NAME_COLUMNS - columns) + 2 : 2, "");
		(void)functions_write_name(merge_base(f->package), FUNCTIONS_NAME_COLUMNS, out);
	}
	(void)fputc('\n', out);
}

/* Writes the sum of the rows that are not shown. */
static void write_others(const struct row *rows, size_t n, FILE *out)
{
	double grown = 0, shrunk = 0;

	for (size_t i = 0; i < n; i++)
		*(rows[i].points > 0 ? &grown : &shrunk) += rows[i].points;
	if (n > 0)
		(void)fprintf(out,
			      "%16s%+7.1f  (%zu other function%s; "
			      "%+.1f, %+.1f)\n",
			      "", grown + shrunk, n, n == 1 ? "" : "s", grown, shrunk);
}

/* Writes the n rows that are shown. */
static int write_shown(const struct compare_table *t, const struct row *rows, size_t n, FILE *out)
{
	struct functions_label labels[ROWS];
	const char *names[ROWS];
	struct string_pool text;
	int r;

	string_pool_init(&text, t->hash_seed);
	for (size_t i = 0; i < n; i++)
		names[i] = rows[i].function->name;
	r = functions_label(names, n, t->full_names, &text, labels);
	for (size_t i = 0; i < n && r == 0; i++)
		write_row(&rows[i], &labels[i], t->has_colours, out);
	string_pool_fini(&text);
	return r;
}

/*
 * Writes a row for each function whose shares of A and B differ by at least MIN_POINTS,
 * largest difference first, and one row for the sum of all other functions.
 */
static int write_rows(const struct compare_table *t, const struct compare *c, FILE *out)
{
	struct row *rows = calloc(c->n_functions + 1, sizeof(*rows));
	size_t n = 0, shown = 0;
	int r;

	if (rows == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < c->n_functions; i++) {
		struct row *row = &rows[n];

		row->function = &c->functions[i];
		for (unsigned int side = 0; side < COMPARE_SIDES; side++)
			row->percents[side] =
				100 * compare_share(c, side, row->function->self_ns[side]);
		row->points = row->percents[1] - row->percents[0];
		if (row->percents[0] > 0 || row->percents[1] > 0)
			n++;
	}
	qsort(rows, n, sizeof(*rows), compare_rows);
	write_head(t, c, out);
	while (shown < min_size(n, ROWS) && magnitude(rows[shown].points) >= MIN_POINTS)
		shown++;
	r = write_shown(t, rows, shown, out);
	write_others(rows + shown, n - shown, out);
	free(rows);
	if (r == 0)
		r = flush_stream(out);
	return r;
}

struct comparison {
	const struct comparison_format *format;
	const char *out; /* "-": standard output */
	char *const *paths;
	struct merge_options options;
	bool has_states; /* --state was given */
	bool full_names;
	struct compare_pair maps[MAPS_MAX];
	char *map_texts[MAPS_MAX]; /* "A\0B" */
	size_t n_maps;
	struct compare result;
	struct merge merge;
};

struct comparison_format {
	const char *name, *suffix;
	/* The page: shows release and platform, and selects running or waiting itself. */
	bool is_page;
	int (*write)(const struct comparison *c, FILE *out);
};

static bool wants_colours(const struct comparison *c)
{
	const char *no_color = getenv("NO_COLOR");

	return strcmp(c->out, "-") == 0 && isatty(STDOUT_FILENO) == 1 &&
	       (no_color == NULL || no_color[0] == '\0');
}

static int write_table(const struct comparison *c, FILE *out)
{
	const struct compare_table table = {
		.states = c->options.states,
		.has_colours = wants_colours(c),
		.full_names = c->full_names,
		.hash_seed = c->options.hash_seed,
	};

	return write_rows(&table, &c->result, out);
}

static int write_folded(const struct comparison *c, FILE *out)
{
	/* The format has no place for the unit. */
	(void)fputs("counts are nanoseconds of each second of thread time, of A and of B\n",
		    stderr);
	return compare_write_folded(&c->result, out);
}

static int write_page(const struct comparison *c, FILE *out)
{
	const struct export_options options = {
		.version = SENTRY_PROFD_VERSION,
		.comparison = &c->result,
	};

	return export_html(&c->merge, &options, out);
}

static const struct comparison_format formats[] = {
	{"table", ".txt", false, write_table},
	{"folded", ".folded", false, write_folded},
	{"html", ".html", true, write_page},
};

static bool set_format(struct comparison *c, const char *name)
{
	for (size_t i = 0; i < array_size(formats); i++)
		if (strcmp(formats[i].name, name) == 0)
			c->format = &formats[i];
	return c->format != NULL ||
	       selection_fault("compare", "to", name, "not a format (table, folded, html)");
}

/* Without --to, the suffix of OUT names the format; without both it is the table. */
static bool choose_format(struct comparison *c)
{
	const size_t n = c->out == NULL ? 0 : strlen(c->out);

	for (size_t i = 0; i < array_size(formats) && c->format == NULL; i++) {
		const size_t length = strlen(formats[i].suffix);

		if (n > length && strcmp(c->out + n - length, formats[i].suffix) == 0)
			c->format = &formats[i];
	}
	if (c->out == NULL)
		c->out = "-";
	if (c->format == NULL && strcmp(c->out, "-") == 0)
		c->format = &formats[0];
	if (c->format == NULL)
		log_error("compare: which format? Add --to FORMAT, or -o FILE with "
			  "the suffix of a format (.txt, .folded, .html)");
	return c->format != NULL;
}

static bool add_map(struct comparison *c, const char *value)
{
	const size_t at = strcspn(value, "=");
	char *text;

	if (at == 0 || value[at] == '\0' || value[at + 1] == '\0')
		return selection_fault("compare", "map", value, "not of the form A=B");
	if (c->n_maps == MAPS_MAX)
		return selection_fault("compare", "map", value, "too many of them");
	text = strdup(value);
	if (text == NULL)
		return selection_fault("compare", "map", value, strerror(ENOMEM));
	text[at] = '\0';
	c->map_texts[c->n_maps] = text;
	c->maps[c->n_maps++] = (struct compare_pair){text, text + at + 1};
	return true;
}

static void comparison_fini(struct comparison *c)
{
	compare_fini(&c->result);
	merge_fini(&c->merge);
	for (size_t i = 0; i < c->n_maps; i++)
		free(c->map_texts[i]);
}

static bool set_option(struct comparison *c, int option, const char *value)
{
	switch (option) {
	case MAP:
		return add_map(c, value);
	case NAMES:
		return option_full_names("compare", value, &c->full_names);
	case 'o':
		c->out = value;
		return true;
	case TO:
		return set_format(c, value);
	default:
		c->has_states |= option == SELECTION_STATE;
		return selection_set(&c->options, "compare", option, value);
	}
}

static bool parse(struct comparison *c, int argc, char **argv)
{
	static const struct option options[] = {
		{"to", required_argument, NULL, TO},
		{"map", required_argument, NULL, MAP},
		{"names", required_argument, NULL, NAMES},
		SELECTION_OPTIONS,
		{0},
	};
	int option;

	*c = (struct comparison){.options = {.until_ns = UINT64_MAX, .states = MERGE_RUNNING}};
	while ((option = option_next(argv[0], argc, argv, ":o:", options, NULL)) != -1)
		if (option == '?' || !set_option(c, option, optarg))
			return false;
	if (argc - optind != COMPARE_SIDES) {
		log_error("compare: %s: name two files or directories that "
			  "sentry-profd has written",
			  argc - optind < COMPARE_SIDES ? "too few profiles" : "too many profiles");
		return false;
	}
	c->paths = argv + optind;
	if (!choose_format(c))
		return false;
	c->options.keep_extra = c->format->is_page;
	if (c->format->is_page && !c->has_states)
		c->options.states = MERGE_ALL;
	return true;
}

static int write_out(void *ctx, FILE *out)
{
	const struct comparison *c = ctx;

	return c->format->write(c, out);
}

static int compare_merge(struct comparison *c)
{
	const char *const names[] = {c->paths[0], c->paths[1]};
	int r = compare_init(&c->result, &c->merge, names, c->maps, c->n_maps);

	if (r < 0)
		log_error("no memory to compare %s with %s: nothing is written", c->paths[0],
			  c->paths[1]);
	for (unsigned int side = 0; side < COMPARE_SIDES && r == 0; side++) {
		if (c->result.total_ns[side] > 0)
			continue;
		log_error("nothing to compare with: %s has no samples that match "
			  "--filter, --state, --from and --until",
			  c->paths[side]);
		r = -ENODATA;
	}
	return r < 0 ? r : selection_write(c->out, write_out, c);
}

int compare_run(int argc, char **argv)
{
	struct comparison c;
	struct merge *m = &c.merge;
	int r = 0;

	if (!parse(&c, argc, argv)) {
		comparison_fini(&c);
		return EXIT_USAGE;
	}
	selection_init(m, &c.options);
	for (; m->side < COMPARE_SIDES && r == 0; m->side++)
		r = selection_read(m, NULL, &c.paths[m->side], 1);
	if (r == 0)
		r = selection_finish(m);
	if (r == 0)
		r = compare_merge(&c);
	comparison_fini(&c);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
