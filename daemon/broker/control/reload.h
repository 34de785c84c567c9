/*
 * SIGHUP: the configuration's files are read again. What is read takes the
 * place of what there is, or, if there is any fault in it, nothing changes.
 *
 * Processes of sections that are as they were go on undisturbed; those of other
 * sections are started anew, or stopped where there is no section for them any
 * more; and all that run are looked at for what is new.
 */
#ifndef DAEMON_BROKER_CONTROL_RELOAD_H
#define DAEMON_BROKER_CONTROL_RELOAD_H

struct notify;
struct parts;

/*
 * Returns 0 or -errno, then all is as it was: -ENOTSUP if there are no files to
 * be read. What is wrong, or takes another start, is said in the log, and in
 * lines_fd, a line each; -1: there only.
 */
int reload(struct parts *parts, struct notify *n, int lines_fd);

#endif
