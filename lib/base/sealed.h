/*
 * Makes a file in memory that no process can change any more: a memfd with all seals
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

/* A file that is being written. */
struct sealed {
	int fd;
	FILE *out; /* to write to; sealed_close() closes it */
};

/* name: shown in /proc/PID/fd. Returns 0, or -errno: then nothing is open. */
must_check int sealed_open(struct sealed *s, const char *name);

/*
 * Ends the writing and seals the file. result: 0, or the -errno of the caller's writing. Returns 0
 * if result is 0 and all was written: *ret_fd is the caller's, with offset 0. Else returns result
 * or the error of the file, and nothing is open.
 */
must_check int sealed_close(struct sealed *s, int result, int *ret_fd, uint64_t *ret_size);

/* Makes a sealed file of bytes. Returns 0 or -errno. */
must_check int sealed_copy(const char *name, const void *bytes, size_t size, int *ret_fd);

/* Returns whether fd is a sealed file of this size. */
bool sealed_is(int fd, uint64_t size);

/*
 * Returns the bytes of memory that the sealed file fd of size bytes has for its whole life, at
 * least size. Its maker may have given it pages behind its end before it was sealed (fallocate(2)).
 * Returns UINT64_MAX if that is not known: a file with holes can get their pages later. Files that
 * the functions above make have neither. Sets the file's offset to size, or to its first hole.
 */
uint64_t sealed_memory(int fd, uint64_t size);

#endif
