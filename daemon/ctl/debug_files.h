/*
 * Files with code and their separate debug files, on this machine. Paths may be
 * a stranger's, of a profile that somebody sent: only regular files are opened,
 * with the caller's rights.
 */
#ifndef DAEMON_CTL_DEBUG_FILES_H
#define DAEMON_CTL_DEBUG_FILES_H

#include "lib/base/util.h"

/*
 * Each returns 0 and a regular file open for reading, -EINVAL if it is none, or
 * -errno.
 */
must_check int debug_files_open(const char *path, int *ret_fd);

/* By build-id, in lower-case hex digits, at least 4: below /usr/lib/debug. */
must_check int debug_files_by_id(const char *build_id, int *ret_fd);

/*
 * By the name that the file at path gives it (.gnu_debuglink), one component:
 * beside that file, in .debug there, and below /usr/lib/debug.
 */
must_check int debug_files_by_link(const char *path, const char *name,
				   int *ret_fd);

#endif
