/*
 * Finds a daemon that can record a process (recording.h): the running one or, if none runs, a
 * private daemon: a sentry-profd that sentry-profctl starts for itself. Used by `stack`, `top` and
 * `record`.
 *
 * The private daemon has the rights of the user who runs sentry-profctl. It profiles one process,
 * and only while a recording of this process is open. It sends nothing and writes no profile. Its
 * socket lies in a new directory of mode 0700. It ends when the profiled process exits, at
 * private_daemon_end(), or when sentry-profctl exits.
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
	struct profd_child profd; /* pid 0: no daemon was started, or it has been reaped */
	char dir[PATH_MAX];	  /* the new directory; "": none */
	char socket[PATH_MAX];	  /* the path of the private daemon's socket */
};

/*
 * Connects to the running daemon, or starts a private one and connects to it.
 *
 * socket: the path that the user gave with --socket, or NULL. target: the pid of the process to
 * profile; 0: the user gave no pid. If no daemon listens on the socket, a private one is started,
 * but only if socket is NULL and target is not 0; otherwise that is an error. The function waits up
 * to 60 s until the private daemon listens, or until *stop is not 0, which a signal handler may
 * set.
 *
 * Returns 0 and the connection in *ret, which the caller closes before private_daemon_end().
 * Returns -EINTR if *stop was set, or another -errno after a line on stderr. If the private daemon
 * has failed, its log is printed, too. The caller calls private_daemon_end() in all cases.
 */
must_check int private_daemon_find(struct private_daemon *d, const char *socket, int32_t target,
				   const volatile sig_atomic_t *stop, struct control_client *ret);

/* Ends the private daemon, if one was started; waits for its exit and removes its directory. */
void private_daemon_end(struct private_daemon *d);

/*
 * Returns the directory for temporary files of sentry-profctl, such as the socket of a private
 * daemon and the page that `view` opens: $XDG_RUNTIME_DIR (in memory, removed at logout), else
 * $TMPDIR, else "/tmp". A variable counts only if it is an absolute path to which the user may
 * write. The caller does not free the string.
 */
const char *common_temporary_directory(void);

#endif
