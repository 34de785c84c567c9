/*
 * The seccomp filters of the processes that read foreign bytes. Everything
 * that is not listed fails with ENOSYS (opening files: ENOENT, so that libdw
 * goes on without), or, with kill, ends the process: for tests, so that a
 * forbidden call cannot hide.
 */
#ifndef DAEMON_COMMON_SANDBOX_H
#define DAEMON_COMMON_SANDBOX_H

#include <stdbool.h>

#include "lib/base/util.h"

enum sandbox {
	SANDBOX_UNWIND, /* memory, the descriptors it has, memfds; no open, no
			   socket, no exec, no signal to others */
	SANDBOX_SHIP,	/* the same, and TCP/UDP sockets, and opening files to
			   read for the resolver and certificates, and making
			   files in write_dir */
};

/*
 * Installs the filter for good; needs no_new_privs. Returns 0 or -errno.
 * In kill mode, too, what libraries only try fails instead: opening a file in
 * SANDBOX_UNWIND (ENOENT); in SANDBOX_SHIP clone3, Unix and netlink sockets,
 * and mapping a library.
 *
 * write_dir: a directory, -1: none. A filter sees its descriptor, and not if a
 * name begins with a slash: what keeps to the directory is landlock(7), where
 * the kernel has it (5.13), and elsewhere the rights of the process.
 */
must_check int sandbox_enter(enum sandbox sandbox, bool kill, int write_dir);

#endif
