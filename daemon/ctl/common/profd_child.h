/*
 * A sentry-profd that sentry-profctl starts as its child, with the rights of the user who
 * runs sentry-profctl. The kernel sends it a SIGTERM if sentry-profctl exits. `doctor`
 * runs `sentry-profd --check-config --servers` and `sentry-profd-unwind --version` this way;
 * private_daemon.h runs a daemon.
 *
 * The log of the child (its stderr) goes to a memfd. The caller prints it if the child has
 * failed: if it has exited early, was killed, or did not print what it was started for.
 */
#ifndef DAEMON_CTL_COMMON_PROFD_CHILD_H
#define DAEMON_CTL_COMMON_PROFD_CHILD_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

struct profd_child {
	int32_t pid; /* 0: not started, or reaped by profd_child_has_exited() or _wait() */
	int log_fd;  /* the memfd; -1: none */
};

/*
 * Starts the child. argv is as for execv(2): argv[0] is the name of the executable, which
 * spawn_find() finds, and NULL ends it. out_fd becomes the stdout of the child; -1 stands for
 * /dev/null. prepare, unless NULL, is called with ctx in the child before execv(2); if it returns
 * false, the child exits. Returns 0 or -errno. Call profd_child_wait() in both cases.
 */
must_check int profd_child_start(struct profd_child *p, char *const *argv, int out_fd,
				 bool (*prepare)(const void *ctx), const void *ctx);

/* Returns true if the child has exited or was never started. Does not wait. */
bool profd_child_has_exited(struct profd_child *p);

/* Copies the log of the child so far to stderr. Call it before profd_child_wait(). */
void profd_child_show_log(const struct profd_child *p);

/*
 * Waits until the child exits, and closes the memfd. Returns the signal that killed the child,
 * or 0: its exit status is not reported, since it depends on what the child was to do. Always 0
 * after profd_child_has_exited() has returned true.
 */
int profd_child_wait(struct profd_child *p);

#endif
