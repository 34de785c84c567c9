/*
 * Files of /proc that say what state a thread or a process is in, and what an
 * error of them means: the one place in lib/capture that decides.
 *
 * Only ENOENT and ESRCH say something of the thread: it is gone. Every other
 * error (EMFILE, ENFILE, ENOMEM, EINTR, EACCES) says something of the caller.
 * The thread's state is unknown then: the caller counts a miss, and reads the
 * file again at a later tick. A switch over the outcome has no default, so that
 * no caller takes a lack for a death.
 */
#ifndef LIB_CAPTURE_PROC_PROC_H
#define LIB_CAPTURE_PROC_PROC_H

#include <stddef.h>

#include "lib/base/util.h"

enum proc_outcome {
	PROC_READ,
	PROC_GONE, /* the thread or the process has ended */
	PROC_LACK, /* errno says of what; for a message only */
};

/* A question of yes or no whose answer is in such a file. */
enum proc_answer {
	PROC_NO,
	PROC_YES,
	PROC_UNKNOWN, /* the file could not be read: ask again later */
};

/*
 * Opens name below dir_fd, close-on-exec; flags as for open(2). *ret_fd is
 * written with PROC_READ.
 */
must_check enum proc_outcome proc_open(int dir_fd, const char *name, int flags, int *ret_fd);

/*
 * Reads up to size bytes of an open file, from offset on. *ret_n is written
 * with PROC_READ; it may be 0.
 */
must_check enum proc_outcome proc_read_at(int fd, uint64_t offset, void *ret, size_t size,
					  size_t *ret_n);

/*
 * Opens name below dir_fd, reads up to size bytes at once, so that they are of
 * one moment, and closes it.
 */
must_check enum proc_outcome proc_read(int dir_fd, const char *name, void *ret, size_t size,
				       size_t *ret_n);

/* The same of a text: up to size - 1 bytes and a NUL; "" if it is not read. */
must_check enum proc_outcome proc_read_text(int dir_fd, const char *name, char *ret, size_t size);

/*
 * The outcome as an error: 0; -ESRCH for PROC_GONE and for nothing else; -errno
 * for PROC_LACK.
 */
must_check int proc_error(enum proc_outcome outcome);

#endif
