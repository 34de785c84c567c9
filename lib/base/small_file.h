/*
 * Reads a small file, such as one in /proc, into the caller's buffer. It uses a single read(2), so
 * that the text is that of one moment. Allocates nothing.
 */
#ifndef LIB_BASE_SMALL_FILE_H
#define LIB_BASE_SMALL_FILE_H

#include <stddef.h>

#include "lib/base/util.h"

/*
 * Reads at most size - 1 bytes of the file with this name, relative to dir_fd as in openat(2), and
 * appends a NUL. A longer file is cut off without an error. size is the size of ret, at least 1.
 * Returns 0, also for an empty file; or the error of openat(2) or read(2), with ret set to "". In
 * /proc, both -ENOENT and -ESRCH mean that the process or thread is gone.
 */
must_check int small_file_read(int dir_fd, const char *name, char *ret, size_t size);

#endif
