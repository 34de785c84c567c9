/*
 * Starting the child executables: a socket at MSG_FD, nothing else of the
 * broker's, a process group of their own (^C is for the broker alone), an
 * environment of listed variables.
 */
#ifndef DAEMON_SPAWN_H
#define DAEMON_SPAWN_H

#include <stdint.h>

#include "lib/base/util.h"

/*
 * Starts the executable of this name, found beside our own or in LIBEXECDIR.
 * environment: NULL-terminated names of variables that it inherits. *ret_fd is
 * our end of the socket, non-blocking. Returns 0 or -errno; that an executable
 * cannot be run shows by its end with status SPAWN_FAILED, as a shell's does.
 */
#define SPAWN_FAILED 127
must_check int spawn_child(const char *name, const char *const *environment,
			   int32_t *ret_pid, int *ret_fd);

#endif
