/*
 * A child process of sentry-profctl: one of the project's executables, whose log goes to a memfd.
 * The child has the rights of the user who runs sentry-profctl. `doctor` runs `sentry-profd
 * --check-config --servers` and `sentry-profd-unwind --version` this way; private_daemon.h runs a
 * daemon.
 */
#ifndef DAEMON_CTL_COMMON_PROFD_CHILD_H
#define DAEMON_CTL_COMMON_PROFD_CHILD_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

/*
 * The kernel sends the child a SIGTERM if sentry-profctl exits.
 *
 * The log of the child (its stderr) goes to a memfd. The exit status of the child is not kept. A
 * caller that misses output of the child, or finds that the child has exited early, prints the log.
 */
struct profd_child {
	int32_t pid; /* 0: not started, or reaped by profd_child_has_exited() or _wait() */
	int log_fd;  /* the memfd; -1: none */
};

/*
 * Starts the child. argv is as for execv(3); argv[0] is the name of an executable without a path,
 * for spawn_find(). out_fd becomes the stdout of the child; -1: /dev/null. The caller keeps out_fd.
 * prepare, if not NULL, is called with ctx in the child before execv(3). If prepare returns false
 * or execv(3) fails, the child exits with status SPAWN_FAILED (daemon/common/spawn.h). Returns 0 if
 * the child has been forked, or -errno. The caller calls profd_child_wait() in both cases.
 */
must_check int profd_child_start(struct profd_child *p, char *const *argv, int out_fd,
				 bool (*prepare)(const void *ctx), const void *ctx);

/*
 * Returns true if the child has exited or was not started. Reaps a child that has exited. Does not
 * wait for the exit.
 */
bool profd_child_has_exited(struct profd_child *p);

/* Copies the log so far to stderr. Call it before profd_child_wait(), which closes the memfd. */
void profd_child_show_log(const struct profd_child *p);

/*
 * Waits until the child exits by itself or by a signal that the caller has sent to p->pid. Closes
 * the memfd. Returns the signal that killed the child, or 0 if the child has exited with any
 * status. Also returns 0 if the child was not started, or if profd_child_has_exited() has reaped
 * it.
 */
int profd_child_wait(struct profd_child *p);

#endif
