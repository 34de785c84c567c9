/*
 * Reload (SIGHUP, sentry-profctl reload): reads the files of the configuration again. If they have
 * no error, the new configuration replaces the old one; otherwise nothing changes.
 *
 * Processes of unchanged sections are profiled without interruption. The runs on processes of
 * changed sections are stopped, and new ones are started with the new section. The runs of removed
 * sections are stopped. Discovery checks all processes again. Ships get the files of their TLS
 * certificates and keys anew, and quarantined files (files/quarantine.h) are tried again.
 */
#ifndef DAEMON_BROKER_CONTROL_RELOAD_H
#define DAEMON_BROKER_CONTROL_RELOAD_H

struct notify;
struct modules;

/*
 * Reads the configuration again, and reports the reload to the service manager by n. Logs the
 * faults of the files, and the keys whose change needs a restart of the daemon. If lines_fd is not
 * -1, also writes these lines to lines_fd, which stays the caller's. Returns 0; or a negative
 * errno, and the configuration stays as it was: -ENOTSUP if the daemon is ending, or has no
 * discovery (report/modules.h) because its command line names the processes; or an error of
 * options_reload().
 */
int reload(struct modules *modules, struct notify *n, int lines_fd);

#endif
