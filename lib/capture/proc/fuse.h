/*
 * Finds out whether a process has a file of a FUSE file system mapped.
 *
 * Used when capture attaches to a process. A read of memory in a page of such a file waits for the
 * file's server. Once the server has taken the request, only the server's answer or end ends the
 * wait; no signal does, not even SIGKILL (fs/fuse/dev.c, request_wait_answer). The server may be
 * the target itself. If its leader stopped before its death (PTRACE_O_TRACEEXIT), the leader would
 * wait for capture to continue it, and capture, in the read, for the server's end. So for a process
 * with such a mapping capture does not set that option (traced_process.exit_stop,
 * tracees_options()).
 *
 * The answer is valid at one moment only: the process can map such a file later. Not detected are
 * - file systems whose mount the process does not see: unmounted lazily, or below overlayfs before
 *   Linux 6.8;
 * - a server that maps none of its own files. It may be a target, and capture may wait for it in a
 *   read of another process's memory.
 */
#ifndef LIB_CAPTURE_PROC_FUSE_H
#define LIB_CAPTURE_PROC_FUSE_H

#include <stdbool.h>

/*
 * Returns true if the process has such a file mapped, or if that is not known: files in /proc/PID
 * cannot be read, or the process has too many mounts or mappings. proc_fd is the descriptor of
 * /proc/PID. Usually takes 0.1 ms, some milliseconds at most; in addition it waits as long as the
 * process is changing its mappings.
 */
bool fuse_is_mapped(int proc_fd);

#endif
