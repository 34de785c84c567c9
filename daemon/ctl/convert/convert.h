/*
 * The command `sentry-profctl convert IN... -o OUT`: reads profiles from files and writes them
 * in another format (formats.h). Needs no daemon and no privileges. `view` writes its page by
 * convert_page(); `record` writes its file by a struct conversion.
 */
#ifndef DAEMON_CTL_CONVERT_CONVERT_H
#define DAEMON_CTL_CONVERT_CONVERT_H

#include <stdbool.h>
#include <stdio.h>

#include "lib/base/util.h"

/*
 * Runs the command; argv[0] is its name. Returns the exit status: EXIT_SUCCESS,
 * EXIT_FAILURE after a line on stderr, or 2 for wrong usage.
 */
int convert_run(int argc, char **argv);

/*
 * Writes one HTML page with the profiles of n files or directories to out. path is the name of out
 * in messages. Returns 0, or -errno after a line on stderr.
 */
must_check int convert_page(char *const *paths, size_t n, FILE *out, const char *path);

/*
 * A conversion of chunks that arrive one at a time. The caller calls conversion_new(),
 * conversion_add() for each chunk, conversion_write() and conversion_free().
 */
struct conversion;

/*
 * Starts a conversion. command is the name for messages. out is the path of the output file; "-" or
 * NULL: standard output. to is the name of the format; NULL: the suffix of out decides. command and
 * out have to outlive the conversion. Returns NULL after a line on stderr, for example if neither
 * to nor out says which format.
 */
struct conversion *conversion_new(const char *command, const char *out, const char *to);

/*
 * Adds the chunk in payload (the chunk as JSON), which is not kept. Returns 0, or -errno after a
 * line on stderr.
 */
must_check int conversion_add(struct conversion *c, const char *payload, size_t size);

/* Writes the output; once, after the last chunk. Returns 0, or -errno after a line on stderr. */
must_check int conversion_write(struct conversion *c);

/* Returns true if the configuration of the profiler kept source lines out of some chunk. */
bool conversion_lacks_lines(const struct conversion *c);

void conversion_free(struct conversion *c); /* accepts NULL */

/* The part of --help-all about this command. */
extern const char convert_help[];

#endif
