/*
 * sentry-profctl record: a file of a process that the daemon profiles, or could
 * (daemon/ctl/recording.h), in a format of convert.
 */
#ifndef DAEMON_CTL_RECORD_H
#define DAEMON_CTL_RECORD_H

/*
 * argv[0] is the command's name. Returns the exit status: EXIT_SUCCESS,
 * EXIT_FAILURE with a line on stderr, or 2 for wrong usage.
 */
int record_run(int argc, char **argv);

/* The lines of --help-all that are about it. */
extern const char record_help[];

#endif
