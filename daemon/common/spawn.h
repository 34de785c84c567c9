/*
 * Starting the child executables: a socket at MSG_FD, nothing else of the
 * broker's, a process group of their own (^C is for the broker alone), an
 * environment of listed variables.
 */
#ifndef DAEMON_COMMON_SPAWN_H
#define DAEMON_COMMON_SPAWN_H

#include <limits.h>
#include <stdint.h>

#include "lib/base/util.h"

/*
 * Finds an executable of the project: beside our own, in LIBEXECDIR or in
 * BINDIR. Returns 0, -ENOENT, or the -errno of reading /proc/self/exe.
 */
must_check int spawn_find(const char *name, char ret[PATH_MAX]);

/*
 * For a child between fork(2) and execve(2): leaves the broker's process group,
 * forgets the signals that the terminal sent to that group, and unblocks all.
 */
void spawn_leave_job(void);

/*
 * Starts the executable of this name, as spawn_find finds it.
 * environment: NULL-terminated names of variables that it inherits, for ship
 * spawn_ship_environment. *ret_fd is
 * our end of the socket, non-blocking. Returns 0 or -errno; that an executable
 * cannot be run shows by its end with status SPAWN_FAILED, as a shell's does.
 */
#define SPAWN_FAILED 127
extern const char *const spawn_ship_environment[];
must_check int spawn_child(const char *name, const char *const *environment, int32_t *ret_pid,
			   int *ret_fd);

#endif
