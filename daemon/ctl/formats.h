/*
 * The table of formats that sentry-profctl convert writes. A new format is a
 * row here, a function of the type format_write, and a row in output_format.c.
 */
#ifndef DAEMON_CTL_FORMATS_H
#define DAEMON_CTL_FORMATS_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/common/output_format.h"
#include "proto/export/export.h"

/* See proto/export/export.h. */
typedef int format_write(const struct merge *m, const struct export_options *o, FILE *out);

struct format {
	const struct output_format *is; /* its name, and the suffix of its files */
	/* What the merge has to be like: see struct merge_options. */
	bool by_function, is_ordered, keep_rest;
	format_write *write;
};

/* The format at this index, from 0 on; NULL: the table is shorter. */
const struct format *format_at(size_t at);
/* NULL: no format has this name, or this ending. */
const struct format *format_by_name(const char *name);
const struct format *format_by_ending(const char *path);

#endif
