/*
 * Files that are found by a name in a target's root: what its images are
 * called, where they do not say it themselves. Runs in the helper of files.h:
 * every call here may hang.
 *
 * The root is the target's own (a container's), and no link leads out of it.
 * Which file that gives is the target's choice. So it is opened with the rights
 * of the target's user, and goes to a process that has no more rights than the
 * target.
 */
#ifndef DAEMON_PROCESS_ROOTED_H
#define DAEMON_PROCESS_ROOTED_H

#include <stdint.h>

#include "lib/base/util.h"

/* As the helper opens every file: it must not wait for one that is no file. */
#define ROOTED_OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

/*
 * Opens for reading what fd, a descriptor of O_PATH, stands for, if that is a
 * regular file. No other file is opened: a device may do something then, and a
 * FIFO waits for a writer. Returns 0, -ENXIO for another file, or -errno. It is
 * for every process, not for the helper alone.
 */
must_check int rooted_open_regular(int fd, int *ret_fd);

/*
 * Each returns 0 and a regular file open for reading, or a negative errno:
 * -EPERM where this process cannot take the rights of the target's user.
 * resolve: RESOLVE_* beside RESOLVE_IN_ROOT and RESOLVE_NO_MAGICLINKS.
 */
must_check int rooted_open(int32_t pid, const char *path, uint64_t resolve, int *ret_fd);

/*
 * A debug file by build-id, in lower-case hex digits, at least 4: of the host,
 * then of the target.
 */
must_check int rooted_debug(int32_t pid, const char *build_id, int *ret_fd);

/*
 * A debug file by the name that the file mapped at path gives it: beside that
 * file, in .debug there, and below /usr/lib/debug. name has no slash.
 */
must_check int rooted_debug_link(int32_t pid, const char *path, const char *name, int *ret_fd);

/*
 * /tmp/perf-PID.map, with the pid that the target has for itself; without
 * symbolic links, and the target's owner must be the file's.
 */
must_check int rooted_perf_map(int32_t pid, int *ret_fd);

#endif
