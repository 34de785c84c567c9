#include "lib/aggregate/programs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/aggregate/table_cells.h"
#include "lib/base/escape.h"

void programs_init(struct programs *p, uint64_t hash_seed)
{
	*p = (struct programs){0};
	string_pool_init(&p->text, hash_seed);
}

void programs_fini(struct programs *p)
{
	string_pool_fini(&p->text);
	programs_init(p, p->text.by_hash.seed);
}

static int row_of(struct programs *p, const char *name, struct programs_row **ret)
{
	const char *own;
	int r;

	for (size_t i = 0; i < p->n; i++)
		if (strcmp(p->rows[i].name, name) == 0) {
			*ret = &p->rows[i];
			return 0;
		}
	*ret = &p->others;
	if (p->n == PROGRAMS_MAX)
		return 0;
	r = string_pool_intern(&p->text, name, &own);
	if (r < 0)
		return r;
	*ret = &p->rows[p->n++];
	(*ret)->name = own;
	return 0;
}

static void add_row(struct programs_row *sum, const struct programs_row *row)
{
	sum->n_processes += row->n_processes;
	for (size_t i = 0; i < PROFILE_STATES; i++)
		sum->ns[i] += row->ns[i];
}

int programs_add(struct programs *p, const char *name, const uint64_t ns[PROFILE_STATES],
		 bool *is_counted)
{
	struct programs_row more = {.n_processes = !*is_counted}, *row;
	uint64_t sum = 0;
	int r;

	for (size_t i = 0; i < PROFILE_STATES; i++)
		sum += more.ns[i] = ns[i];
	if (sum == 0)
		return 0;
	r = row_of(p, name, &row);
	if (r < 0)
		return r;
	add_row(row, &more);
	*is_counted = true;
	return 0;
}

static int compare_rows(const void *a, const void *b)
{
	const struct programs_row *x = a, *y = b;

	for (size_t i = 0; i < PROFILE_STATES; i++)
		if (x->ns[i] != y->ns[i])
			return x->ns[i] > y->ns[i] ? -1 : 1;
	return strcmp(x->name, y->name);
}

static void write_row(const struct programs_row *row, uint64_t running_ns, bool with_ready,
		      FILE *out)
{
	table_cells_share(row->ns[PROFILE_RUNNING], running_ns, out);
	if (with_ready)
		table_cells_time(row->ns[PROFILE_READY], out);
	table_cells_time(row->ns[PROFILE_WAITING], out);
	(void)fprintf(out, "%11" PRIu64 "  ", row->n_processes);
}

int programs_write(const struct programs *p, size_t max_rows, bool with_ready, FILE *out)
{
	const size_t n_shown = min_size(p->n, max_rows);
	struct programs_row all = p->others, others = p->others;
	struct programs_row *rows;

	for (size_t i = 0; i < p->n; i++)
		add_row(&all, &p->rows[i]);
	if (all.n_processes <= 1)
		return 0;
	rows = calloc(p->n + 1, sizeof(*rows));
	if (rows == NULL)
		return -ENOMEM;
	memcpy(rows, p->rows, p->n * sizeof(*rows));
	qsort(rows, p->n, sizeof(*rows), compare_rows);
	(void)fprintf(out,
		      "Programs, with the times of all threads. A process that executed another "
		      "program counts in both.\n\n%11s  %6s",
		      "CPU TIME", "");
	if (with_ready)
		(void)fprintf(out, "%11s", "READY");
	(void)fprintf(out, "%11s%11s  PROGRAM\n", "WAITING", "PROCESSES");
	for (size_t i = 0; i < n_shown; i++) {
		write_row(&rows[i], all.ns[PROFILE_RUNNING], with_ready, out);
		escape_write(rows[i].name, out);
		(void)fputc('\n', out);
	}
	for (size_t i = n_shown; i < p->n; i++)
		add_row(&others, &rows[i]);
	if (others.n_processes > 0) {
		write_row(&others, all.ns[PROFILE_RUNNING], with_ready, out);
		(void)fputs("(other programs)\n", out);
	}
	(void)fputc('\n', out);
	free(rows);
	return 0;
}
