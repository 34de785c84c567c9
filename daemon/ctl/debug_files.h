/*
 * Files with code and their separate debug files, on this machine. A path may
 * come from a profile that a stranger has made: the functions open regular files
 * only, with the rights of the user who runs sentry-profctl.
 */
#ifndef DAEMON_CTL_DEBUG_FILES_H
#define DAEMON_CTL_DEBUG_FILES_H

#include "lib/base/util.h"

/*
 * Each function returns 0 and a descriptor of a regular file, open for reading;
 * -ENXIO if the file is of another kind; or -errno.
 */
must_check int debug_files_open(const char *path, int *ret_fd);

/* By build-id, in lower-case hex digits, at least 4: below /usr/lib/debug. */
must_check int debug_files_by_id(const char *build_id, int *ret_fd);

/*
 * By the name that the file at path gives it (.gnu_debuglink), one component:
 * beside that file, in .debug there, and below /usr/lib/debug.
 */
must_check int debug_files_by_link(const char *path, const char *name, int *ret_fd);

#endif
