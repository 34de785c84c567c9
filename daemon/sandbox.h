/*
 * The seccomp filters of the processes that read foreign bytes. Everything
 * that is not listed fails with ENOSYS (opening files: ENOENT, so that libdw
 * goes on without), or, with kill, ends the process: for tests, so that a
 * forbidden call cannot hide.
 */
#ifndef DAEMON_SANDBOX_H
#define DAEMON_SANDBOX_H

#include <stdbool.h>

#include "lib/base/util.h"

enum sandbox {
	SANDBOX_UNWIND, /* memory, the descriptors it has, memfds; no open, no
			   socket, no exec, no signal to others */
	SANDBOX_SHIP,	/* the same, and TCP/UDP sockets, and opening files to
			   read for the resolver and certificates */
};

/*
 * Installs the filter for good; needs no_new_privs. Returns 0 or -errno.
 * In kill mode, too, what libraries only try fails instead: opening a file in
 * SANDBOX_UNWIND (ENOENT); in SANDBOX_SHIP clone3, Unix and netlink sockets,
 * and mapping a library.
 */
must_check int sandbox_enter(enum sandbox sandbox, bool kill);

#endif
