/*
 * Finds a daemon that can record a process (recording.h): the running one, or, if none
 * runs, a sentry-profd that sentry-profctl starts for itself. Used by `stack` and `top`.
 *
 * The private daemon has the caller's rights. It profiles one process and only while
 * sentry-profctl is connected, sends nothing and writes no profile. Its socket lies in a
 * new directory of mode 0700. It ends when its target exits, at private_daemon_end(), and
 * when sentry-profctl exits.
 */
#ifndef DAEMON_CTL_COMMON_PRIVATE_DAEMON_H
#define DAEMON_CTL_COMMON_PRIVATE_DAEMON_H

#include <limits.h>
#include <signal.h>
#include <stdint.h>

#include "daemon/common/control_client.h"
#include "daemon/ctl/common/profd_child.h"
#include "lib/base/util.h"

struct private_daemon {
	struct profd_child profd; /* pid 0: no daemon was started */
	char dir[PATH_MAX];
	char socket[PATH_MAX];
};

/*
 * Connects to the running daemon. If none runs, starts one for process target and connects
 * to it; not if the user named a socket (socket is NULL if not) or if target is 0.
 * *ret is the connection: close it before private_daemon_end(), which has to be called
 * after an error, too. *stop is set by a signal handler; it ends the wait for the new
 * daemon with -EINTR. Returns 0, or -errno after a line on stderr.
 */
must_check int private_daemon_find(struct private_daemon *d, const char *socket, int32_t target,
				   const volatile sig_atomic_t *stop, struct control_client *ret);

/* Ends the daemon that was started, waits for its exit and removes the directory. */
void private_daemon_end(struct private_daemon *d);

#endif
