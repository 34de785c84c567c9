/*
 * Finds out whether a process has a file of a FUSE file system mapped.
 *
 * Used when capture attaches to a process. If capture reads memory in a page of such a file, it
 * waits for the file's server. Once the server has taken the request, only its answer or its end
 * ends the wait; no signal does, not even SIGKILL (fs/fuse/dev.c, request_wait_answer). The server
 * may be the target itself. So a process with such a mapping must be able to die without waiting
 * for capture. For such a process capture does not set PTRACE_O_TRACEEXIT, by which the leader
 * stops before it dies and waits for its tracer (traced_process.exit_stop, tracees_options()).
 *
 * The answer is valid at one moment only: the process can map such a file later. Not detected are
 * file systems whose mount the process does not see (unmounted lazily, or below overlayfs before
 * Linux 6.8), and a server that maps none of its own files.
 */
#ifndef LIB_CAPTURE_PROC_FUSE_H
#define LIB_CAPTURE_PROC_FUSE_H

#include <stdbool.h>

/*
 * Returns true if the process has such a file mapped, or if that is not known: its files in /proc
 * cannot be read, or it has too many mounts or mappings. proc_fd is the descriptor of its
 * /proc/PID. Usually takes 0.1 ms, some milliseconds at most, and waits while the process changes
 * its mappings.
 */
bool fuse_is_mapped(int proc_fd);

#endif
