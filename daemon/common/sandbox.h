/*
 * Sandboxes for three processes: unwind and ship, which parse untrusted data (files and stacks of
 * targets; answers from the network), and capture, which can read the memory of all processes. A
 * sandbox is a seccomp filter and a landlock ruleset; the sandbox of capture is a filter only.
 *
 * unwind and ship call sandbox_enter(). capture does not link libseccomp. Its filter is made when
 * the project is built: print_filter.c (daemon/capture/filter/) calls sandbox_export().
 * daemon/capture/filter.h installs this filter.
 *
 * A system call that the filter does not allow fails with ENOSYS. Some calls that libraries try
 * and can do without fail with another error:
 *
 *     unwind  opening a file, or reading its       ENOENT, so that libdw takes the file as
 *             attributes or link, by path          missing
 *     ship    Unix and netlink sockets             EAFNOSUPPORT
 *             mapping memory as executable         EPERM, so that a library cannot be loaded
 *
 * For tests, a forbidden call can kill the process instead (kill is true). The calls of this list,
 * and clone3 in capture and ship (ENOSYS), return their error even then. A call of another
 * architecture (32-bit code, x32) always kills the process.
 */
#ifndef DAEMON_COMMON_SANDBOX_H
#define DAEMON_COMMON_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

enum sandbox {
	/*
	 * Allows tracing of processes, reading of their memory, opening files for reading, timers,
	 * threads, and the calls of SANDBOX_UNWIND. Refuses writing to the memory of processes,
	 * opening files for writing, exec, sockets other than pairs, and signals.
	 */
	SANDBOX_CAPTURE,
	/*
	 * As SANDBOX_CAPTURE. Also allows opening, starting and stopping perf events, and setting
	 * their period.
	 */
	SANDBOX_CAPTURE_PERF,
	/*
	 * Allows memory calls, I/O on descriptors that are open, and memfd_create. Refuses open,
	 * socket, exec, executable memory, and signals to other processes.
	 */
	SANDBOX_UNWIND,
	/*
	 * As SANDBOX_UNWIND. Also allows threads, TCP and UDP sockets, opening files for reading
	 * (the resolver and OpenSSL need some), and creating, renaming and removing files in
	 * write_dir.
	 */
	SANDBOX_SHIP,
};

/*
 * Installs the landlock ruleset and then the filter; neither can be removed. sandbox:
 * SANDBOX_UNWIND or SANDBOX_SHIP. The caller must have set no_new_privs. Returns 0 or -errno; after
 * an error the sandbox may be incomplete, and the caller must exit.
 *
 * write_dir: a descriptor of the only directory in which the process may create files; -1: none.
 * The caller keeps the descriptor open, because the filter allows openat(2) to create files only
 * with this number as its dirfd. The filter cannot see whether the name that openat(2) gets is
 * absolute. So landlock (Linux 5.13) confines the process to the directory. On older kernels only
 * the permissions of the process's user do that.
 */
must_check int sandbox_enter(enum sandbox sandbox, bool kill, int write_dir);

/*
 * Writes the filter of a sandbox to fd, as an array of struct sock_filter (linux/filter.h). arch:
 * the architecture that the filter is for, one of libseccomp's SCMP_ARCH_ constants. kill: as in
 * sandbox_enter(). The filter allows writing in no directory (write_dir is -1). Returns 0 or
 * -errno.
 */
must_check int sandbox_export(enum sandbox sandbox, bool kill, uint32_t arch, int fd);

#endif
