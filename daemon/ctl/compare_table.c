#include "daemon/ctl/compare_table.h"

#include <stdlib.h>
#include <string.h>

#include "lib/aggregate/functions.h"

/* What is less shows as 0.0. */
#define LEAST_POINTS 0.05

/* Of the column of functions. Longer names push the module to the right. */
#define NAME_COLUMNS 40

#define RED  "\033[31m"
#define BLUE "\033[34m"
#define OFF  "\033[0m"

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
	case MERGE_WAITING:
		return "waited";
	case MERGE_ALL:
		break;
	}
	return "ran or waited";
}

static void write_head(const struct compare_table *t, const struct compare *c, FILE *out)
{
	const char *word = time_word(t->states);

	for (unsigned int side = 0; side < COMPARE_SIDES; side++) {
		const double total_s = (double)c->total_ns[side] / (double)NS_PER_SEC;
		const double lasts_s = (double)c->lasts_ns[side] / (double)NS_PER_SEC;

		(void)fprintf(out, "%c  ", "AB"[side]);
		(void)functions_write_name(c->names[side], out);
		(void)fprintf(out,
			      ": threads %s for %.2f s within %.2f s, "
			      "%.2f s a second\n",
			      word, total_s, lasts_s, lasts_s > 0 ? total_s / lasts_s : 0);
	}
	(void)fprintf(out,
		      "Each side is 100 %% of the time that its threads %s: "
		      "1 %% is 10 ms of each second of it.\n"
		      "A, B: in the function itself; CHANGE: B - A.\n\n"
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

static void write_row(const struct row *row, bool has_colours, FILE *out)
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
	columns = functions_write_name(f->name, out);
	if (f->package != NULL) {
		(void)fprintf(out, "%*s",
			      columns < NAME_COLUMNS ? (int)(NAME_COLUMNS - columns) + 2 : 2, "");
		(void)functions_write_name(merge_base(f->package), out);
	}
	(void)fputc('\n', out);
}

/* All rows that are not shown. */
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

int compare_table_write(const struct compare_table *t, const struct compare *c, FILE *out)
{
	struct row *rows = calloc(c->n_functions + 1, sizeof(*rows));
	size_t n = 0, shown = 0;

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
	for (; shown < min_size(n, t->rows) && magnitude(rows[shown].points) >= LEAST_POINTS;
	     shown++)
		write_row(&rows[shown], t->has_colours, out);
	write_others(rows + shown, n - shown, out);
	free(rows);
	return fflush(out) == 0 && !ferror(out) ? 0 : -EIO;
}
