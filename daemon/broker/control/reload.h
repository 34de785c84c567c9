/*
 * Reload (SIGHUP, sentry-profctl reload): reads the files of the configuration again. The new
 * configuration replaces the old one. If it has an error, nothing changes.
 *
 * Processes of unchanged sections are profiled without interruption. Runs of changed sections
 * are restarted, runs of removed sections are stopped, and discovery checks all processes again.
 */
#ifndef DAEMON_BROKER_CONTROL_RELOAD_H
#define DAEMON_BROKER_CONTROL_RELOAD_H

struct notify;
struct parts;

/*
 * Returns 0, or a negative errno if the configuration stays as it was: -ENOTSUP if there are no
 * files to read or the daemon is ending. Logs the faults and the keys that need a restart of the
 * daemon, and also writes them to lines_fd, one per line; -1: to the log only.
 */
int reload(struct parts *parts, struct notify *n, int lines_fd);

#endif
