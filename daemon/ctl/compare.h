/*
 * sentry-profctl compare A B: what grew and what shrank between two profiles
 * (proto/export/compare.h), as a table, as collapsed stacks with two counts, or
 * as a page. Works by itself, without privileges and without a daemon.
 */
#ifndef DAEMON_CTL_COMPARE_H
#define DAEMON_CTL_COMPARE_H

/*
 * argv[0] is the command's name. Returns the exit status: EXIT_SUCCESS,
 * EXIT_FAILURE with a line on stderr, or 2 for wrong usage.
 */
int compare_run(int argc, char **argv);

/* The lines of --help-all that are about it. */
extern const char compare_help[];

#endif
