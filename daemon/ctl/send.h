/*
 * sentry-profctl send: chunks that were written to files go to a server, by a
 * sentry-profd-ship of our own (daemon/ctl/own_child.h), one at a time. So limits
 * of the server, its silence, proxies and TLS are ship's matter, as in the
 * daemon. Files are only read. Needs no daemon and no rights.
 */
#ifndef DAEMON_CTL_SEND_H
#define DAEMON_CTL_SEND_H

/*
 * argv[0] is the command's name. Returns the exit status: EXIT_SUCCESS if the
 * server has taken every chunk of every file, EXIT_FAILURE with lines on
 * stderr, or 2 for wrong usage.
 */
int send_run(int argc, char **argv);

/* The lines of --help-all that are about it. */
extern const char send_help[];

#endif
