/*
 * Reload (SIGHUP, sentry-profctl reload): reads the files of the configuration again. The new
 * configuration replaces the old one; if it has any fault, nothing changes.
 *
 * Processes of unchanged sections are profiled on without a break. Runs of changed sections
 * are restarted, runs of removed sections are stopped, and discovery checks all processes
 * again.
 */
#ifndef DAEMON_BROKER_CONTROL_RELOAD_H
#define DAEMON_BROKER_CONTROL_RELOAD_H

struct notify;
struct parts;

/*
 * Returns 0, or -errno if nothing has changed: -ENOTSUP if there are no files to be read.
 * Faults, and keys that need a restart of the daemon, are logged and written to lines_fd, a
 * line each; with lines_fd -1 they are logged only.
 */
int reload(struct parts *parts, struct notify *n, int lines_fd);

#endif
