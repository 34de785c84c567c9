/*
 * The command `sentry-profctl top [PID|NAME]`: shows on the terminal, second by second, the
 * functions, threads and callers of a process, or, without an argument, all targets of the
 * daemon with what profiling costs them.
 *
 * top.c has the loop and handles the keys, top_model.h sums up the times of a process,
 * top_targets.h has the list of targets, top_screen.h draws.
 */
#ifndef DAEMON_CTL_TOP_TOP_H
#define DAEMON_CTL_TOP_TOP_H

/*
 * Runs the command; argv[0] is its name. Returns the exit status: EXIT_SUCCESS, also after SIGINT;
 * EXIT_FAILURE after a line on stderr; 2 for wrong usage, or if stdin or stdout is no terminal; or
 * 128 plus the number of another signal that ended the command.
 */
int top_run(int argc, char **argv);

/* The part of --help-all about this command. */
extern const char top_help[];

#endif
