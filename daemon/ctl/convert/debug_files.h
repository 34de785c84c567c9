/*
 * Opens program files and separate debug files of this machine, for the symbolizer.
 *
 * The functions return 0 with a descriptor of a regular file, open for reading; -ENXIO if
 * the file is not a regular one; or another -errno. A path may come from a profile of
 * unknown origin: files are opened with the rights of the user who runs sentry-profctl, and
 * devices and pipes are not opened at all.
 */
#ifndef DAEMON_CTL_CONVERT_DEBUG_FILES_H
#define DAEMON_CTL_CONVERT_DEBUG_FILES_H

#include "lib/base/util.h"

/* Opens the file at path. */
must_check int debug_files_open(const char *path, int *ret_fd);

/*
 * Opens the debug file of a build-id below /usr/lib/debug. build_id: at least 4 lower-case
 * hex digits.
 */
must_check int debug_files_by_id(const char *build_id, int *ret_fd);

/*
 * Opens the debug file that .gnu_debuglink of the file at path names: the first one that exists
 * beside that file, in .debug/ beside it, or below /usr/lib/debug. Does not read it: the caller
 * compares the checksum. path is absolute; name is a single path component. -ENOENT: there is none.
 */
must_check int debug_files_by_link(const char *path, const char *name, int *ret_fd);

#endif
