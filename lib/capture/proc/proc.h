/*
 * Reads files of /proc, and distinguishes the death of a thread from a lack of resources.
 *
 * Only ENOENT and ESRCH mean that the thread, or the process, is gone (PROC_GONE). All other
 * errors, such as EMFILE, ENOMEM, EINTR and EACCES, mean that this process could not read
 * (PROC_LACK): the state of the thread is not known. Then the caller counts a missed sample and
 * reads the file again at a later tick. All of lib/capture follows this rule. A switch over the
 * outcome has no default, so that no caller takes a lack for a death.
 */
#ifndef LIB_CAPTURE_PROC_PROC_H
#define LIB_CAPTURE_PROC_PROC_H

#include <stddef.h>

#include "lib/base/util.h"

enum proc_outcome {
	PROC_READ, /* success */
	PROC_GONE, /* the thread or the process has ended */
	PROC_LACK, /* any other error; errno is set, for messages only */
};

/* The answer to a yes-or-no question about a thread or process, read from /proc. */
enum proc_answer {
	PROC_NO,
	PROC_YES,
	PROC_UNKNOWN, /* PROC_LACK: ask again later */
};

/* Opens name below dir_fd with flags of open(2), close-on-exec added. The caller closes *ret_fd. */
must_check enum proc_outcome proc_open(int dir_fd, const char *name, int flags, int *ret_fd);

/* Reads up to size bytes of an open file, from offset on. *ret_n: bytes read; 0 at the end. */
must_check enum proc_outcome proc_read_at(int fd, uint64_t offset, void *ret, size_t size,
					  size_t *ret_n);

/*
 * Opens name below dir_fd, and reads its first size bytes or fewer by one read(2), so that all
 * bytes are of one moment. *ret_n: bytes read.
 */
must_check enum proc_outcome proc_read(int dir_fd, const char *name, void *ret, size_t size,
				       size_t *ret_n);

/* As proc_read(), for a text: up to size - 1 bytes and a NUL. On failure the text is "". */
must_check enum proc_outcome proc_read_text(int dir_fd, const char *name, char *ret, size_t size);

/*
 * Returns the outcome as an error: 0 for PROC_READ, -ESRCH for PROC_GONE only, -errno for
 * PROC_LACK. Call it before errno changes.
 */
must_check int proc_error(enum proc_outcome outcome);

#endif
