/*
 * A small file, such as the kernel's in /proc, read at once into a buffer that
 * the caller has: no allocation, and one read, so that what it says is of one
 * moment.
 */
#ifndef LIB_BASE_SMALL_FILE_H
#define LIB_BASE_SMALL_FILE_H

#include <stddef.h>

#include "lib/base/util.h"

/*
 * Reads name, below dir_fd unless it is absolute (AT_FDCWD serves too), up to
 * size - 1 bytes, and ends them with a NUL. Returns 0, also for an empty file,
 * or the error of openat(2) or read(2): of /proc, ENOENT and ESRCH both mean
 * that the process or thread is gone. ret is "" then; size is at least 1.
 */
must_check int small_file_read(int dir_fd, const char *name, char *ret, size_t size);

#endif
