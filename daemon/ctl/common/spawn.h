/*
 * The processes that sentry-profctl starts: a child whose log goes to a memfd (struct
 * profd_child), and a helper that answers messages (struct helper). Also the directory for the
 * files of such processes. daemon/common/spawn.h finds and starts the executables.
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
 * The log of the child (its stderr) goes to a memfd. The caller prints it if the child has
 * failed: if it has exited early, was killed, or did not print what it was started for.
 */
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

/*
 * A helper: one sentry-profd-ship or one sentry-profd-unwind, started in the same way as the
 * broker starts it, for a few messages. `send` starts a ship, file_reader.h an unwind. The calls
 * block until the helper answers.
 */
struct helper {
	int32_t pid; /* 0: no process */
	int fd;	     /* the socket to the helper, blocking; -1: none */
};

/*
 * Starts a sentry-profd-ship and waits until it is ready. files are n descriptors, one
 * for each bit that is set in mask (struct msg_init), lowest bit first; the caller
 * keeps them. If the caller is root, the helper runs under the account of ship. Returns
 * 0 or -errno. Call helper_kill() in both cases.
 */
must_check int helper_start_ship(struct helper *h, const int *files, size_t n, uint32_t mask);

/*
 * Starts a sentry-profd-unwind in the same way; as root under the account of unwind. page_fd is
 * a page from page_new() for one uint32_t, in which unwind writes the number of the file that
 * it is reading (struct msg_init); the caller keeps it.
 */
must_check int helper_start_unwind(struct helper *h, int page_fd);

/*
 * Waits for the next message, which has to be of this type, and stores it in *m. Closes
 * the descriptors that came with it. Returns 0, -EPIPE if the helper has exited, -EPROTO
 * if the message is of another type or size, or -errno.
 */
must_check int helper_receive(const struct helper *h, enum msg_type type, struct ipc_message *m);

/* Kills the helper and closes the socket. Does nothing if there is no process. */
void helper_kill(struct helper *h);

/*
 * Returns the directory for temporary files of sentry-profctl, such as the socket of a private
 * daemon and the page that `view` opens: $XDG_RUNTIME_DIR (in memory, removed at logout), else
 * $TMPDIR, else "/tmp". A variable counts if it is an absolute path that the user may write to.
 * The string is static or of the environment; the caller does not free it.
 */
const char *spawn_temporary_directory(void);

#endif
