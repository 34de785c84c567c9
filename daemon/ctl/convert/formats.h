/*
 * The table of the formats that sentry-profctl writes. A new format is a row in this table,
 * a function of the type format_write, and a row in daemon/common/output_format.c.
 */
#ifndef DAEMON_CTL_CONVERT_FORMATS_H
#define DAEMON_CTL_CONVERT_FORMATS_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/common/output_format.h"
#include "proto/export/export.h"

/* proto/export/export.h describes parameters and errors. */
typedef int format_write(const struct merge *m, const struct export_options *o, FILE *out);

struct format {
	const struct output_format *is; /* the name of the format and the suffix of its files */
	/* The options that the merge needs: see struct merge_options. */
	bool by_function, is_ordered, keep_extra;
	format_write *write;
};

/* Returns the format at an index, or NULL at the end of the table. */
const struct format *format_at(size_t at);

/* Return the format of this name, or of the suffix of this path; NULL: none. */
const struct format *format_by_name(const char *name);
const struct format *format_by_ending(const char *path);

#endif
