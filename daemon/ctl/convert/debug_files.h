/*
 * Opens program files and separate debug files of this machine, for the symbolizer.
 *
 * The functions return 0 with a descriptor of a regular file, open for reading, which the caller
 * owns; -ENXIO if the file is not a regular one; or another -errno. A path may come from a profile
 * of unknown origin. So files are opened with the rights of the user who runs sentry-profctl, and
 * devices and pipes are not opened.
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
 * Opens the debug file of the program file at path, an absolute path. name is the name in the
 * section .gnu_debuglink of the program file: a single path component. Looks beside the program
 * file, then in .debug/ beside it, then in the same directory below /usr/lib/debug; the first file
 * that can be opened counts. The caller compares the checksum. Returns -ENOENT if there is none.
 */
must_check int debug_files_by_link(const char *path, const char *name, int *ret_fd);

#endif
