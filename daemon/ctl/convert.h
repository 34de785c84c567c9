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
must_check int convert_page(char *const *paths, size_t n, FILE *out,
			    const char *path);

/* The lines of --help-all that are about it. */
extern const char convert_help[];

#endif
