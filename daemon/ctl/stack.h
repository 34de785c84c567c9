/*
 * The command `sentry-profctl stack PID`: prints the stack of each thread of a process, as the
 * profiler sees it, from a recording of one to three seconds (common/recording.h). If no daemon
 * runs, it starts a private one (common/private_daemon.h).
 */
#ifndef DAEMON_CTL_STACK_H
#define DAEMON_CTL_STACK_H

/*
 * Runs the command; argv[0] is its name. Returns the exit status: EXIT_SUCCESS,
 * EXIT_FAILURE after a line on stderr, 2 for wrong usage, or 128 plus the number of a
 * signal: SIGINT, SIGTERM or SIGHUP, whose handler makes the function return early.
 *
 * With --oracle, executes sentry-profd-oracle in place of this process, and returns only if that
 * fails. sentry-profd-oracle prints the stacks that lib/unwind finds, and compares them with those
 * of another unwinder.
 */
int stack_run(int argc, char **argv);

/* The part of --help-all about this command. */
extern const char stack_help[];

#endif
