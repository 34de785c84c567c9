/*
 * The files that were handed to one unwind process, each with a number: what
 * that process may say of them is no more than such a number.
 */
#ifndef DAEMON_HANDED_H
#define DAEMON_HANDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/file_identity.h"
#include "lib/base/util.h"

/*
 * Who a file is, and what it is called, cut off in front; any bytes but NUL. A
 * copy (of a target's memory, of a file of FUSE) has the number of the process,
 * negated, for a device, and its addresses for inode and size.
 */
#define FILE_NAME_SHOWN 256
struct file_shown {
	struct file_identity identity;
	char name[FILE_NAME_SHOWN];
};

/*
 * What stands behind fd, which was opened for the addresses start to end of
 * process pid, or for no addresses. It may hang, as all does that asks a file
 * system of a target's. Returns 0 or -errno.
 */
must_check int file_shown_of(int fd, int32_t pid, uint64_t start, uint64_t end,
			     struct file_shown *ret);

/*
 * More than the libraries of most that are profiled of a user: 128 KB. The
 * number of the oldest is nobody's when there are more.
 */
#define HANDED_MAX 4096

struct handed {
	struct file_identity *files; /* in a ring, of size places */
	size_t size;
	uint32_t last; /* number that was given; 0: none */
};

/*
 * Its number, from 1 on: a new one, or that which it has. 0: there is no memory
 * for it.
 */
uint32_t handed_add(struct handed *h, const struct file_identity *file);
/* NULL: that number is none, or none any more. */
const struct file_identity *handed_file(const struct handed *h,
					uint32_t number);
void handed_fini(struct handed *h);

#endif
