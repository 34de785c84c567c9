/*
 * A file that the broker sends to an unwind process: its identity, and its name for the log and
 * the status.
 */
#ifndef DAEMON_BROKER_FILES_FILE_SHOWN_H
#define DAEMON_BROKER_FILES_FILE_SHOWN_H

#include <stdint.h>

#include "lib/base/file_identity.h"
#include "lib/base/util.h"

/*
 * A file's identity and its path. If the path is too long, its beginning is cut off. It can
 * contain any byte but NUL. A copy (of a target's memory, or of a file on FUSE) is identified by
 * the process's negated pid in place of the device, and by its addresses in place of inode and
 * size.
 */
#define FILE_NAME_SHOWN 256
struct file_shown {
	struct file_identity identity;
	char name[FILE_NAME_SHOWN];
};

/*
 * Describes the file fd, which was opened for the addresses start to end of process pid, or for
 * no addresses (0). May hang in a file system that a target controls. Returns 0 or -errno.
 */
must_check int file_shown_of(int fd, int32_t pid, uint64_t start, uint64_t end,
			     struct file_shown *ret);

#endif
