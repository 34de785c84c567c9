/*
 * Does a process have a file of a FUSE file system mapped?
 *
 * A read of memory that needs a page of such a file waits for its server, and
 * where that has taken the request, no kill ends the wait (fs/fuse/dev.c,
 * request_wait_answer): only the answer, or the server's end. So a process with
 * such a file, which may be the server itself, must not have to wait for
 * capture before it can die.
 *
 * The answer is of one moment: a process can map such a file afterwards. A
 * server that maps none of its files is not recognized, nor is a file system
 * that the process does not see mounted (unmounted lazily, or below overlayfs
 * before Linux 6.8).
 */
#ifndef LIB_CAPTURE_PROC_FUSE_H
#define LIB_CAPTURE_PROC_FUSE_H

#include <stdbool.h>

/*
 * True if the process has one, or if that cannot be told: it has very many
 * mounts or mappings. proc_fd: its /proc/PID. Asks no file system; a process
 * that changes its mappings may be waited for. Takes 0.1 ms as a rule, and some
 * milliseconds at most.
 */
bool fuse_is_mapped(int proc_fd);

#endif
