/*
 * sentry-profctl top: the functions, threads and callers of a process, second
 * by second, or all targets of the daemon with what they cost, on the terminal.
 */
#ifndef DAEMON_CTL_TOP_H
#define DAEMON_CTL_TOP_H

/*
 * argv[0] is the command's name. Returns the exit status: EXIT_SUCCESS,
 * EXIT_FAILURE with a line on stderr, 128 and the number of the signal that
 * ended it (but for ^C), or 2 for wrong usage.
 */
int top_run(int argc, char **argv);

/* The lines of --help-all that are about it. */
extern const char top_help[];

#endif
