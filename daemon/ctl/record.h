/*
 * The command `sentry-profctl record PID|NAME -o FILE`: profiles a process for a time, by a
 * recording of the daemon (common/recording.h), and writes the profile in a format of `convert`.
 * With a PID and without a running daemon, it starts a private one (common/private_daemon.h).
 */
#ifndef DAEMON_CTL_RECORD_H
#define DAEMON_CTL_RECORD_H

/*
 * Runs the command; argv[0] is its name. Returns the exit status: EXIT_SUCCESS,
 * EXIT_FAILURE after a line on stderr, or 2 for wrong usage.
 */
int record_run(int argc, char **argv);

/* The part of --help-all about this command. */
extern const char record_help[];

#endif
