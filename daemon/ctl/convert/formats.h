/*
 * The functions that write the formats of daemon/common/output_format.h. A new format is a row
 * in the table of formats.c, a function of the type format_write, and a row in
 * daemon/common/output_format.c, which has its name and the suffix of its files.
 */
#ifndef DAEMON_CTL_CONVERT_FORMATS_H
#define DAEMON_CTL_CONVERT_FORMATS_H

#include <stdbool.h>

#include "proto/export/export.h"

/* proto/export/export.h describes parameters and errors. */
typedef int format_write(const struct merge *m, const struct export_options *o, FILE *out);

struct format {
	/* The options that the merge needs: see struct merge_options. */
	bool by_function, is_ordered, keep_extra;
	format_write *write;
};

/* Return the format of this name, or of the suffix of this path; NULL: none. */
const struct format *format_by_name(const char *name);
const struct format *format_by_suffix(const char *path);

#endif
