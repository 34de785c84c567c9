/*
 * A file that the broker hands to an unwind process: its identity, and its name for the log
 * and the status.
 */
#ifndef DAEMON_BROKER_FILES_FILE_SHOWN_H
#define DAEMON_BROKER_FILES_FILE_SHOWN_H

#include <stdint.h>

#include "lib/base/file_identity.h"
#include "lib/base/util.h"

/*
 * A file's identity, and its path, whose beginning is cut off where it is too long: any
 * bytes but NUL. A copy (of a target's memory, or of a file of FUSE) has the process's
 * pid, negated, in place of the device, and its addresses in place of inode and size.
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

#endif
