#include "daemon/config/config_fault.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/common/log.h"

/* The size of the text that says where a fault is: a path, a line number and punctuation. */
#define PLACE_MAX (PATH_MAX + 32)

static void format_place(const struct config *c, const struct config_origin *origin,
			 char ret[PLACE_MAX])
{
	const char *file =
		origin->file == 0 || origin->file > c->n_files ? NULL : c->files[origin->file - 1];

	if (file != NULL && origin->line != 0)
		(void)snprintf(ret, PLACE_MAX, "%s:%u: ", file, origin->line);
	else if (file != NULL)
		(void)snprintf(ret, PLACE_MAX, "%s: ", file);
	else if (origin->given_by != NULL)
		(void)snprintf(ret, PLACE_MAX, "%s: ", origin->given_by);
	else
		ret[0] = '\0';
}

static bool is_before(const struct config_origin *origin, const struct config_fault *fault)
{
	return origin->file < fault->file ||
	       (origin->file == fault->file && origin->line < fault->line);
}

/* Inserts a fault behind the other faults of the same line. */
static void insert(struct config_faults *f, const struct config_origin *origin, bool is_warning,
		   char *text)
{
	size_t i = f->n++;

	for (; i > 0 && is_before(origin, &f->v[i - 1]); i--)
		f->v[i] = f->v[i - 1];
	f->v[i] = (struct config_fault){
		.text = text,
		.is_warning = is_warning,
		.file = origin->file,
		.line = origin->line,
	};
}

/* Makes room for an error. Returns false if all faults are errors. */
static bool drop_last_warning(struct config_faults *f)
{
	size_t i = f->n;

	while (i > 0 && !f->v[i - 1].is_warning)
		i--;
	if (i == 0)
		return false;
	free(f->v[i - 1].text);
	memmove(&f->v[i - 1], &f->v[i], (f->n - i) * sizeof(f->v[0]));
	f->n--;
	return true;
}

void config_fault_add(struct config_faults *f, const struct config *c,
		      const struct config_origin *origin, bool is_warning, const char *format, ...)
{
	char place[PLACE_MAX], *what, *text;
	va_list args;

	f->n_errors += !is_warning;
	if (f->n == array_size(f->v) && (is_warning || !drop_last_warning(f)))
		return;
	format_place(c, origin, place);
	va_start(args, format);
	if (vasprintf(&what, format, args) >= 0) {
		if (asprintf(&text, "%s%s", place, what) >= 0)
			insert(f, origin, is_warning, text);
		free(what);
	}
	va_end(args);
}

void config_faults_fini(struct config_faults *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->v[i].text);
	*f = (struct config_faults){.n = 0};
}

void config_faults_log(struct config_faults *f)
{
	size_t logged = 0;

	for (size_t i = 0; i < f->n; i++) {
		logged += !f->v[i].is_warning;
		log_list_entry(f->v[i].is_warning, "%s", f->v[i].text);
	}
	if (f->n_errors > logged)
		log_error("%zu more faults of the configuration are not shown",
			  f->n_errors - logged);
	config_faults_fini(f);
}
