/*
 * The command `sentry-profctl compare A B`: shows the functions whose share of the time is
 * larger in B than in A, and those whose share is smaller (proto/export/compare.h). The output is a
 * table, collapsed stacks with two counts, or an HTML page. Needs no daemon and no privileges.
 */
#ifndef DAEMON_CTL_CONVERT_COMPARE_H
#define DAEMON_CTL_CONVERT_COMPARE_H

/*
 * Runs the command; argv[0] is its name. Returns the exit status: EXIT_SUCCESS,
 * EXIT_FAILURE after a line on stderr, or 2 for wrong usage.
 */
int compare_run(int argc, char **argv);

/* The part of --help-all about this command. */
extern const char compare_help[];

#endif
