/*
 * What `convert` and `compare` have in common: the options that select a part of the
 * profiles (--filter, --from, --until, --state), the merge of the files, and writing the
 * output file.
 */
#ifndef DAEMON_CTL_CONVERT_SELECTION_H
#define DAEMON_CTL_CONVERT_SELECTION_H

#include <stdbool.h>
#include <stdio.h>

#include "daemon/common/option_fault.h"
#include "daemon/ctl/convert/symbolizer.h"
#include "proto/export/merge.h"

/* What getopt_long(3) returns for the options. */
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
 * Stores the value of one of these options in o, which keeps a pointer to value. Returns
 * false after a line on stderr that begins with the name of the command.
 */
bool selection_set(struct merge_options *o, const char *command, int option, const char *value);

/* Prints "COMMAND: --OPTION VALUE: PROBLEM" to stderr. Returns false. */
bool selection_fault(const char *command, const char *option, const char *value,
		     const char *problem);

/*
 * Reads the value of --names, short or full. Returns false after a line on stderr that begins with
 * the name of the command.
 */
bool selection_names(const char *command, const char *value, bool *ret_full);

/*
 * Initialises an empty merge. Sets the demangler and the hash seed in o, then copies *o to m: set
 * all other options before. The patterns of filters are not copied and have to outlive m.
 */
void selection_init(struct merge *m, struct merge_options *o);

/*
 * Adds the chunks of n files or directories to m. s adds names to their frames; NULL: the
 * frames stay as they are. Returns 0, -ENODATA if there is no chunk, or another -errno;
 * each error after a line on stderr.
 */
must_check int selection_read(struct merge *m, struct symbolizer *s, char *const *paths, size_t n);

/* The same for a payload in memory, without a symbolizer. name is for messages. */
must_check int selection_read_payload(struct merge *m, const char *name, const char *bytes,
				      size_t size);

/* Finishes m and warns on stderr of what its chunks lack. Returns 0 or -ENOMEM. */
must_check int selection_finish(struct merge *m);

/*
 * A callback that writes a whole output and flushes it. Returns 0 or -errno. It returns -ENOENT
 * only after a line on stderr of its own: the thread of --thread does not exist.
 */
typedef int selection_writer(void *ctx, FILE *out);

/*
 * Opens the file at path, or takes standard output if path is "-", and calls write with it.
 * Removes a regular file that could not be written completely. Returns 0, or the error of write
 * or of the file after a line on stderr; for -ENOENT of write that is the line of write.
 */
must_check int selection_write(const char *path, selection_writer *write, void *ctx);

#endif
