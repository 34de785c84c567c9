/*
 * The label of a file that the broker sends to an unwind process: the file's identity, from which
 * quarantine.h calculates the number of the file, and its name, for log lines and the status.
 */
#ifndef DAEMON_BROKER_FILES_FILE_LABEL_H
#define DAEMON_BROKER_FILES_FILE_LABEL_H

#include <stdint.h>

#include "lib/base/file_identity.h"
#include "lib/base/util.h"

/*
 * Two kinds of labels:
 *
 *                 a file                   a copy
 *     identity    that of the file         device: -pid, inode: start address, size: length
 *     name        its path                 "memory of process PID"
 *
 * A copy is a memfd that the broker sends instead of a file (daemon/process/open.h): of memory of
 * the profiled process, of a file on FUSE, or of a text of /proc. The identity of the memfd itself
 * would be a new one each time. All copies that were opened for no addresses, such as texts of
 * /proc, have start address 0 and length 0, so those of one process have the same label. name ends
 * with a NUL. If a path is too long, its beginning is cut off. The path can contain any byte but
 * NUL, since the profiled process may have chosen it.
 */
#define FILE_LABEL_SIZE 256 /* bytes of the name, NUL included */
struct file_label {
	struct file_identity identity;
	char name[FILE_LABEL_SIZE];
};

/*
 * Fills in the label of the file fd, which was opened for the addresses start to end of process
 * pid, or for no addresses (both 0). A memfd whose name is OPEN_COPY_NAME (open.h) counts as a
 * copy. This function may hang in a file system that a profiled process controls, so only the
 * helper (files.h) calls it. Returns 0 or -errno.
 */
must_check int file_label_of(int fd, int32_t pid, uint64_t start, uint64_t end,
			     struct file_label *ret);

#endif
