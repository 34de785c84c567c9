/*
 * Starts the executables of the project as child processes. A child gets no arguments, and:
 * - a socket to its parent at descriptor MSG_FD (ipc_pair() in lib/base/ipc.h), a stderr, /dev/null
 *   as stdin and stdout, and no other descriptor,
 * - a process group of its own, so that ^C reaches the parent only,
 * - an environment with the variables that the caller lists. LOG_JOURNAL_VARIABLE is added if the
 *   child gets a log_fd, or if this process has the variable; with it the child writes a priority
 *   before each log line (daemon/common/log.h).
 */
#ifndef DAEMON_COMMON_SPAWN_H
#define DAEMON_COMMON_SPAWN_H

#include <limits.h>
#include <stdint.h>

#include "lib/base/util.h"

/*
 * Finds an executable of the project: in the directory of this process's own executable, else in
 * LIBEXECDIR, BINDIR or SBINDIR, in that order. Returns 0, -ENOENT if the name is in none of them,
 * -errno of access(2) if a file of this name cannot be executed, or -errno of reading
 * /proc/self/exe.
 */
must_check int spawn_find(const char *name, char ret[PATH_MAX]);

/*
 * For code that forks by itself: call it in the child before execve(2). spawn_child() does so. The
 * child leaves the parent's process group. Pending SIGINT, SIGQUIT, SIGTERM, SIGHUP and SIGTSTP
 * are discarded, because they were sent to the whole group. All signals are unblocked.
 */
void spawn_leave_job(void);

/*
 * Starts the executable of this name, as spawn_find() finds it.
 *
 * environment: the names of the variables that the child inherits, at most 15, with NULL at the
 * end. For ship the caller passes spawn_ship_environment, the proxy variables of libcurl.
 *
 * log_fd: becomes the child's stderr; the caller keeps it. The child writes log lines to it in the
 * format of the journal, with a priority (log_relay() in daemon/common/log.h). -1: the child has
 * the caller's stderr.
 *
 * *ret_fd: the parent's end of the socket, non-blocking, which the caller owns. The caller reaps
 * *ret_pid. Returns 0, an error of spawn_find(), or another -errno. If execve(2) fails, the child
 * exits with status SPAWN_FAILED, as in a shell.
 */
#define SPAWN_FAILED 127
extern const char *const spawn_ship_environment[];
must_check int spawn_child(const char *name, const char *const *environment, int log_fd,
			   int32_t *ret_pid, int *ret_fd);

#endif
