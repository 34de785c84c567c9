/*
 * sentry-profctl stack: the stack of each thread of a process on stdout, as the
 * profiler has it, from a recording of the daemon (daemon/ctl/recording.h).
 */
#ifndef DAEMON_CTL_STACK_H
#define DAEMON_CTL_STACK_H

/*
 * argv[0] is the command's name. Returns the exit status: EXIT_SUCCESS,
 * EXIT_FAILURE with a line on stderr, or 2 for wrong usage. With --oracle this
 * process becomes sentry-profd-oracle.
 */
int stack_run(int argc, char **argv);

/* The lines of --help-all that are about it. */
extern const char stack_help[];

#endif
