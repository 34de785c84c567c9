/*
 * The identity of a file: device, inode, size and change time (ctime). Two identities are compared
 * to find out whether a file is the one that was read before, with the same content. A file that
 * was written to has another identity, because its change time differs. So has a file with the same
 * content and another mode, owner or number of links.
 */
#ifndef LIB_BASE_FILE_IDENTITY_H
#define LIB_BASE_FILE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "lib/base/clock.h"

struct file_identity {
	uint64_t device;
	uint64_t inode;
	uint64_t size;	   /* bytes */
	uint64_t ctime_ns; /* Unix time */
};

/* A file and the address at which a mapping of it begins. */
struct mapped_file {
	uint64_t start;
	struct file_identity file;
};

/* Returns the identity of the file that stat(2) described. */
static inline struct file_identity file_identity_of(const struct stat *st)
{
	return (struct file_identity){
		.device = st->st_dev,
		.inode = st->st_ino,
		.size = (uint64_t)st->st_size,
		.ctime_ns =
			(uint64_t)st->st_ctim.tv_sec * NS_PER_SEC + (uint64_t)st->st_ctim.tv_nsec,
	};
}

/* Returns whether both are the same file, unchanged. */
static inline bool file_identity_equal(const struct file_identity *a, const struct file_identity *b)
{
	return a->device == b->device && a->inode == b->inode && a->size == b->size &&
	       a->ctime_ns == b->ctime_ns;
}

#endif
