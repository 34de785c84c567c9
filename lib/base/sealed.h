/*
 * Makes sealed files: files in memory that no process can change any more, by the seals of a memfd
 * (memfd_create(2), fcntl(2)). Chunks and other large data are passed between processes in such
 * files.
 */
#ifndef LIB_BASE_SEALED_H
#define LIB_BASE_SEALED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/base/util.h"

/* A file that is being written, from sealed_open() to sealed_close(). */
struct sealed {
	int fd;
	FILE *out; /* the caller writes to it; sealed_close() closes it */
};

/* Opens an empty file. name: shown in /proc/PID/fd. Returns 0, or -errno: then nothing is open. */
must_check int sealed_open(struct sealed *s, const char *name);

/*
 * Ends the writing and seals the file. result: 0, or the -errno with which the caller's writing has
 * failed. Returns 0 if result is 0 and everything was written: *ret_fd is the caller's, with offset
 * 0, and *ret_size is the size in bytes. Otherwise closes the file, and returns result; -EIO if a
 * write failed; or the error of a system call.
 */
must_check int sealed_close(struct sealed *s, int result, int *ret_fd, uint64_t *ret_size);

/*
 * Makes a sealed file of size bytes. *ret_fd is the caller's, with offset 0. Returns 0, or an error
 * of sealed_open() or sealed_close().
 */
must_check int sealed_copy(const char *name, const void *bytes, size_t size, int *ret_fd);

/* Returns whether fd is a sealed file of this size, so that its content cannot change. */
bool sealed_is(int fd, uint64_t size);

/*
 * Returns the bytes of memory that a file takes, now and later, for which sealed_is(fd, size) is
 * true. These can be more than size: before a process seals its file, it can allocate pages behind
 * the end of the file (fallocate(2)). Returns UINT64_MAX if the file is empty, or has holes, which
 * can get pages later. Files of sealed_close() have no holes and no such pages. Moves the file's
 * offset.
 */
uint64_t sealed_memory(int fd, uint64_t size);

#endif
