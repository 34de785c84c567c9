/*
 * The steps that `convert` and `compare` share: read the options that select a part of the profiles
 * (--filter, --from, --until, --state), merge the files, and write the output file.
 *
 * The order of calls for one output: selection_set() for each option, selection_init(),
 * selection_read() or selection_read_payload() once or several times, selection_finish(),
 * selection_write().
 */
#ifndef DAEMON_CTL_CONVERT_SELECTION_H
#define DAEMON_CTL_CONVERT_SELECTION_H

#include <stdbool.h>
#include <stdio.h>

#include "daemon/common/option_fault.h"
#include "daemon/ctl/convert/symbolizer.h"
#include "proto/export/merge.h"

/* The values that getopt_long(3) returns for these options. */
enum {
	SELECTION_FILTER = OPTION_LONG,
	SELECTION_FROM,
	SELECTION_UNTIL,
	SELECTION_STATE,
	SELECTION_END, /* the first number for options of the command itself */
};

/* The entries of these options for a table of getopt_long(3). */
/* clang-format off */
#define SELECTION_OPTIONS                                        \
	{"filter", required_argument, NULL, SELECTION_FILTER},   \
	{"from", required_argument, NULL, SELECTION_FROM},       \
	{"until", required_argument, NULL, SELECTION_UNTIL},     \
	{"state", required_argument, NULL, SELECTION_STATE}
/* clang-format on */

/*
 * Stores the value of one of these options, a SELECTION_*, in o. The values, with an example:
 *
 *	--filter	[function=|module=|thread=]PATTERN (struct merge_filter), "module=libc*";
 *			MERGE_FILTERS_MAX times at most
 *	--from, --until	seconds since the first sample, "1.5"
 *	--state		"all", "running", "ready" or "waiting"
 *
 * The value has to outlive o. Before the first call o is zeros, except o->until_ns: UINT64_MAX. If
 * the value is not valid, prints a line on stderr that begins with command, and returns false.
 */
bool selection_set(struct merge_options *o, const char *command, int option, const char *value);

/* Prints "COMMAND: --OPTION VALUE: PROBLEM" to stderr. Returns false. */
bool selection_fault(const char *command, const char *option, const char *value,
		     const char *problem);

/*
 * Initialises an empty merge. Sets the demangler and the hash seed in o, then copies *o to m. So
 * the caller sets all other options before. The patterns of filters are not copied and have to
 * outlive m. The caller frees m by merge_fini().
 */
void selection_init(struct merge *m, struct merge_options *o);

/*
 * Adds the chunks of n files or directories to m. s adds names to the frames of the chunks; NULL:
 * the frames stay as they are. Returns 0; or, after a line on stderr, -ENODATA if the files have no
 * chunk, or another -errno.
 */
must_check int selection_read(struct merge *m, struct symbolizer *s, char *const *paths, size_t n);

/*
 * Adds the chunks of one file, whose content is in memory, without a symbolizer. name is for
 * messages. Returns 0, also if there is no chunk, or -errno after a line on stderr.
 */
must_check int selection_read_payload(struct merge *m, const char *name, const char *bytes,
				      size_t size);

/*
 * Finishes m (merge_finish()): no chunk may be added afterwards. Warns on stderr if the options
 * select nothing, if chunks overlap, or if samples do not say in which state the thread was.
 * Returns 0, or -ENOMEM after a line on stderr.
 */
must_check int selection_finish(struct merge *m);

/* A callback that writes a whole output and flushes it. Returns 0 or -errno. */
typedef int selection_writer(void *ctx, FILE *out);

/*
 * Creates or truncates the file at path and calls write with it; "-": with standard output. If
 * writing fails, removes the file, unless it is a device or pipe. Returns 0, or the error of write
 * or of the file, after one line on stderr.
 */
must_check int selection_write(const char *path, selection_writer *write, void *ctx);

#endif
