/*
 * sentry-profctl convert IN... -o OUT: profiles that were written to files, in
 * the formats of other viewers (daemon/ctl/formats.h). Works by itself, without
 * privileges and without a daemon.
 */
#ifndef DAEMON_CTL_CONVERT_H
#define DAEMON_CTL_CONVERT_H

#include <stdio.h>

#include "lib/base/util.h"

/*
 * argv[0] is the command's name. Returns the exit status: EXIT_SUCCESS,
 * EXIT_FAILURE with a line on stderr, or 2 for wrong usage.
 */
int convert_run(int argc, char **argv);

/*
 * Writes the html page of n files or directories to out, which path names to
 * the user. Returns 0, or -errno after a line on stderr.
 */
must_check int convert_page(char *const *paths, size_t n, FILE *out, const char *path);

/*
 * A conversion of payloads that come one at a time, for the command that is
 * named. to: the format; NULL: by the ending of out. Returns NULL after a line
 * on stderr.
 */
struct conversion;
struct conversion *conversion_new(const char *command, const char *out, const char *to);
/* Returns 0, or -errno after a line on stderr. */
must_check int conversion_add(struct conversion *c, const char *payload, size_t size);
/* Writes the file. Returns 0, or -errno after a line on stderr. */
must_check int conversion_write(struct conversion *c);
void conversion_free(struct conversion *c); /* takes NULL */

/* The lines of --help-all that are about it. */
extern const char convert_help[];

#endif
