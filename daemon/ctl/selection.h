/*
 * What convert and compare have in common: the options that select a part of
 * the profiles, the merge of what was read, and the file that is written.
 */
#ifndef DAEMON_CTL_SELECTION_H
#define DAEMON_CTL_SELECTION_H

#include <stdbool.h>
#include <stdio.h>

#include "daemon/common/option_fault.h"
#include "daemon/ctl/symbolizer.h"
#include "proto/export/merge.h"

enum {
	SELECTION_FILTER = OPTION_LONG,
	SELECTION_FROM,
	SELECTION_UNTIL,
	SELECTION_STATE,
	SELECTION_END, /* the first val that a command's own options have */
};

/* Entries of a command's table for getopt_long(3). */
/* clang-format off */
#define SELECTION_OPTIONS                                        \
	{"filter", required_argument, NULL, SELECTION_FILTER},   \
	{"from", required_argument, NULL, SELECTION_FROM},       \
	{"until", required_argument, NULL, SELECTION_UNTIL},     \
	{"state", required_argument, NULL, SELECTION_STATE}
/* clang-format on */

/*
 * Sets what one of these options says. Returns false after a line on stderr
 * that begins with the command's name. The merge keeps a pointer into value.
 */
bool selection_set(struct merge_options *o, const char *command, int option, const char *value);

/* A line on stderr: value is wrong for --option. Returns false. */
bool selection_fault(const char *command, const char *option, const char *value,
		     const char *wanted);

/* An empty merge with these options; demangler and hash seed are set here. */
void selection_init(struct merge *m, struct merge_options *o);

/*
 * Adds the chunks of all paths to m (daemon/ctl/inputs.h), with what s knows of
 * their frames; NULL: as they are. Returns 0, or an
 * error after a line on stderr; -ENODATA: none of the paths has a chunk.
 */
must_check int selection_read(struct merge *m, struct symbolizer *s, char *const *paths, size_t n);

/* Adds the chunks of one payload, as they are; name is for the user. */
must_check int selection_read_payload(struct merge *m, const char *name, const char *bytes,
				      size_t size);

/* Finishes m, and says on stderr what it lacks. Returns 0 or -ENOMEM. */
must_check int selection_finish(struct merge *m);

/* Writes all of an output, and flushes it. Returns 0 or -errno. */
typedef int selection_writer(void *ctx, FILE *out);

/*
 * Calls write with the file at path, or with standard output if that is "-". A
 * file that could not be written to its end is removed. Returns what write does
 * or the error of the file, after a line on stderr; write has said so itself
 * where it returns -ENOENT.
 */
must_check int selection_write(const char *path, selection_writer *write, void *ctx);

#endif
