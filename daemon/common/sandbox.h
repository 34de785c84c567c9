/*
 * Seccomp filters for unwind and ship, the processes that read foreign bytes. A system call
 * that a filter does not list fails with ENOSYS, and opening a file in unwind with ENOENT, so
 * that libdw goes on without the file. For tests, a forbidden call kills the process instead.
 */
#ifndef DAEMON_COMMON_SANDBOX_H
#define DAEMON_COMMON_SANDBOX_H

#include <stdbool.h>

#include "lib/base/util.h"

enum sandbox {
	/* Memory, its own descriptors, memfds. No open, socket, exec, or signal to others. */
	SANDBOX_UNWIND,
	/*
	 * As SANDBOX_UNWIND; and TCP and UDP sockets, opening files for reading, which the
	 * resolver and certificates need, and making files in write_dir.
	 */
	SANDBOX_SHIP,
};

/*
 * Installs the filter for good. Requires no_new_privs. Returns 0 or -errno.
 *
 * kill: a forbidden call kills the process. Calls that libraries only try fail even then: in
 * SANDBOX_UNWIND opening a file (ENOENT); in SANDBOX_SHIP clone3, Unix and netlink sockets,
 * and mapping a library.
 *
 * write_dir: a descriptor of the directory, or -1. The filter compares the descriptor only,
 * and cannot see whether a name is absolute: landlock(7) confines the process to the
 * directory (Linux 5.13), or, on older kernels, the permissions of its user.
 */
must_check int sandbox_enter(enum sandbox sandbox, bool kill, int write_dir);

#endif
