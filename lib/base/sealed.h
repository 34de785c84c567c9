/*
 * A file in memory whose bytes nobody can change any more: a memfd with all
 * seals, to be passed to another process (memfd_create(2), fcntl(2)).
 */
#ifndef LIB_BASE_SEALED_H
#define LIB_BASE_SEALED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/base/util.h"

/* One that is being written. */
struct sealed {
	int fd;
	FILE *out; /* for the writer; sealed_close closes it */
};

/* name: for a person, in /proc/PID/fd. Returns 0 or -errno: nothing is open. */
must_check int sealed_open(struct sealed *s, const char *name);

/*
 * Ends the writing, whose outcome is result (0 or -errno), and seals the file.
 * Returns 0: *ret_fd, whose offset is 0, is the caller's. Else result, or the
 * error of the file: nothing is open any more.
 */
must_check int sealed_close(struct sealed *s, int result, int *ret_fd, uint64_t *ret_size);

/* Both, for bytes that are there. Returns 0 or -errno. */
must_check int sealed_copy(const char *name, const void *bytes, size_t size, int *ret_fd);

/* fd is such a file, of so many bytes. */
bool sealed_is(int fd, uint64_t size);

#endif
