/*
 * Does a process have to do with a file system of FUSE?
 *
 * A read of memory that needs a page of such a file waits for its server, and
 * where that has taken the request, no kill ends the wait (fs/fuse/dev.c,
 * request_wait_answer): only the answer, or the server's end. So whoever may be
 * that server, or be what it waits for, must not have to wait for us to die.
 *
 * What is asked is of one moment: a process can map such a file, or become such
 * a server, afterwards.
 */
#ifndef LIB_CAPTURE_FUSE_H
#define LIB_CAPTURE_FUSE_H

#include <stdbool.h>

/*
 * True if a process has a file of FUSE mapped, or /dev/fuse open among its
 * first 256 descriptors, or if that cannot be told: it has very many mappings,
 * or one of a file system that is not to be seen. proc_fd: its /proc/PID. Asks
 * no file system; a process that changes its mappings may be waited for. Takes
 * 0.1 ms as a rule, and some milliseconds at most.
 */
bool fuse_is_near(int proc_fd);

#endif
