/*
 * The command `sentry-profctl send IN...`: sends the chunks in files to a Sentry server. It starts
 * a sentry-profd-ship (common/helper.h) and hands it one chunk at a time. This ship deals with rate
 * limits, retries, proxies and TLS as in the daemon. The files stay as they are. Needs no daemon
 * and no privileges.
 */
#ifndef DAEMON_CTL_SEND_H
#define DAEMON_CTL_SEND_H

/*
 * Runs the command; argv[0] is its name. Returns the exit status: EXIT_SUCCESS if the
 * server has accepted every chunk of every file, EXIT_FAILURE after lines on stderr, or 2
 * for wrong usage.
 */
int send_run(int argc, char **argv);

/* The part of --help-all about this command. */
extern const char send_help[];

#endif
