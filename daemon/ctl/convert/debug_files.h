/*
 * Opens program files and separate debug files of this machine, for the symbolizer.
 *
 * A path may come from a profile of unknown origin, so the functions open regular files only, and
 * no devices or pipes. They return 0 with a descriptor, open for reading, which the caller owns; or
 * -errno.
 */
#ifndef DAEMON_CTL_CONVERT_DEBUG_FILES_H
#define DAEMON_CTL_CONVERT_DEBUG_FILES_H

#include "lib/base/util.h"

/* Opens the file at path. Returns -ENXIO if it is not a regular file. */
must_check int debug_files_open(const char *path, int *ret_fd);

/*
 * Opens the debug file of a build-id, for "0a1b2c" /usr/lib/debug/.build-id/0a/1b2c.debug. build_id
 * has at least 4 lower-case hex digits. Returns -ENXIO if it is not a regular file.
 */
must_check int debug_files_by_id(const char *build_id, int *ret_fd);

/*
 * Opens the debug file of the program file at path, an absolute path. name is the name in the
 * section .gnu_debuglink of the program file, without a slash. Tries three places in this order,
 * here for path /usr/bin/ls and name ls.debug, and opens the first regular file that it can open:
 *	/usr/bin/ls.debug, /usr/bin/.debug/ls.debug, /usr/lib/debug/usr/bin/ls.debug
 * Does not compare the checksum of .gnu_debuglink. Returns -ENOENT if none can be opened.
 */
must_check int debug_files_by_link(const char *path, const char *name, int *ret_fd);

#endif
