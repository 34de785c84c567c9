/*
 * Starts the child processes of sentry-profctl: a child whose log goes to a memfd (struct
 * profd_child), or a helper that answers messages (struct helper). Also chooses a directory for
 * temporary files. daemon/common/spawn.h finds the executables.
 */
#ifndef DAEMON_CTL_COMMON_SPAWN_H
#define DAEMON_CTL_COMMON_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/msg/msg.h"
#include "lib/base/ipc.h"
#include "lib/base/util.h"

/*
 * A child with the rights of the user who runs sentry-profctl. The kernel sends it a SIGTERM if
 * sentry-profctl exits. `doctor` runs `sentry-profd --check-config --servers` and
 * `sentry-profd-unwind --version` this way; private_daemon.h runs a daemon.
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
 * for spawn_find(). out_fd becomes the stdout of the child; -1: /dev/null. prepare, if not NULL, is
 * called with ctx in the child before execv(3). If prepare returns false or execv(3) fails, the
 * child exits with status SPAWN_FAILED (daemon/common/spawn.h). Returns 0 if the child has been
 * forked, or -errno. The caller calls profd_child_wait() in both cases.
 */
must_check int profd_child_start(struct profd_child *p, char *const *argv, int out_fd,
				 bool (*prepare)(const void *ctx), const void *ctx);

/*
 * Returns true if the child has exited or was not started. Reaps a child that has exited. Does not
 * wait.
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

/*
 * A helper: a sentry-profd-ship or sentry-profd-unwind that exchanges a few messages with
 * sentry-profctl, which takes the broker's part (daemon/msg/msg.h). `send` starts a ship,
 * file_reader.h an unwind. helper_start_*() and helper_receive() block until the helper sends a
 * message or exits, without a time limit.
 */
struct helper {
	int32_t pid; /* 0: no process */
	int fd;	     /* the socket to the helper, blocking, for ipc_send(); -1: none */
};

/*
 * Starts a sentry-profd-ship and waits until it is ready. Bit k of mask says that ship gets the
 * file k of enum init_file (daemon/msg/msg.h). files has the n descriptors of these files, in the
 * order of their bits, lowest bit first. The caller keeps the descriptors. If sentry-profctl runs
 * as root, the helper runs under the account of ship. Returns 0 or -errno. The caller calls
 * helper_kill() in both cases.
 */
must_check int helper_start_ship(struct helper *h, const int *files, size_t n, uint32_t mask);

/*
 * Starts a sentry-profd-unwind and waits until it is ready. If sentry-profctl runs as root, the
 * helper runs under the account of unwind. page_fd: a page for one uint32_t, made by page_new()
 * (daemon/msg/page.h). unwind writes to the page the number of the file that it reads (MSG_INIT in
 * daemon/msg/msg.h). The caller keeps page_fd. Returns 0 or -errno. The caller calls helper_kill()
 * in both cases.
 */
must_check int helper_start_unwind(struct helper *h, int page_fd);

/*
 * Waits for the next message, which has to be of this type, and stores the message in *m. Only for
 * messages without descriptors: the function closes all descriptors of the message. Returns 0;
 * -EPIPE if the helper has exited; -EPROTO if the message is of another type or size; or another
 * -errno of the socket.
 */
must_check int helper_receive(const struct helper *h, enum msg_type type, struct ipc_message *m);

/* Kills the helper and closes the socket. Does nothing if there is no process. */
void helper_kill(struct helper *h);

/*
 * Returns the directory for temporary files of sentry-profctl, such as the socket of a private
 * daemon and the page that `view` opens: $XDG_RUNTIME_DIR (in memory, removed at logout), else
 * $TMPDIR, else "/tmp". A variable counts only if it is an absolute path to which the user may
 * write. The caller does not free the string.
 */
const char *spawn_temporary_directory(void);

#endif
