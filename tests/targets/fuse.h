/*
 * What a target says to the kernel that is a FUSE server itself (fuse(4)).
 */
#ifndef TESTS_TARGETS_FUSE_H
#define TESTS_TARGETS_FUSE_H

#include <errno.h>
#include <linux/fuse.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* The most that is answered at once: a page. */
#define FUSE_REPLY_MAX 4096

/* To a request of this number; a failure ends the process. */
static void fuse_reply(int fd, uint64_t unique, int error, const void *body,
		       size_t size)
{
	char out[sizeof(struct fuse_out_header) + FUSE_REPLY_MAX];
	const struct fuse_out_header header = {
		.len = (uint32_t)(sizeof(header) + size),
		.error = error,
		.unique = unique,
	};

	memcpy(out, &header, sizeof(header));
	if (size > 0)
		memcpy(out + sizeof(header), body, size);
	/* ENOENT: the request was taken back. */
	if (write(fd, out, header.len) < 0 && errno != ENOENT)
		_exit(1);
}

#endif
