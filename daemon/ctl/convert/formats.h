/*
 * The output formats of `convert` and `record`: for each format of daemon/common/output_format.h
 * the function that writes it. To add a format, write a function of the type format_write, and add
 * a row to the table in formats.c and a row to the table in daemon/common/output_format.c, which
 * has the name of the format and the suffix of its files.
 */
#ifndef DAEMON_CTL_CONVERT_FORMATS_H
#define DAEMON_CTL_CONVERT_FORMATS_H

#include <stdbool.h>

#include "proto/export/export.h"

/* Writes a merged profile; proto/export/export.h describes parameters and errors. */
typedef int format_write(const struct merge *m, const struct export_options *o, FILE *out);

struct format {
	/* The members of struct merge_options that the merge needs for this format. */
	bool by_function, is_ordered, keep_extra;
	format_write *write;
};

/* Return the format with this name, or with the suffix that path has; NULL: there is none. */
const struct format *format_by_name(const char *name);
const struct format *format_by_suffix(const char *path);

#endif
