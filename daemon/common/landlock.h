/*
 * Restricts where this process can write, by landlock(7), independent of its user and of the
 * names that it opens. The restriction cannot be removed. Three processes restrict themselves at
 * their start: unwind and ship (sandbox.h), and the `sentry-profctl convert` that the broker starts
 * at the end of a run with --output FILE.
 */
#ifndef DAEMON_COMMON_LANDLOCK_H
#define DAEMON_COMMON_LANDLOCK_H

#include "lib/base/util.h"

/*
 * From this call on the process can make, open for writing, rename and remove only regular files,
 * and these only in the directory dir and below it. A file can be renamed only within its
 * directory. If dir is -1, all of this is forbidden everywhere. Not restricted are reading,
 * truncate(2), and changes of mode, owner and times. Open descriptors keep their rights.
 *
 * The caller keeps dir, and must have set no_new_privs. Returns 0 or -errno. Returns 0 without
 * effect if the kernel has no landlock (before 5.13, or not among its security modules), or if a
 * container forbids it.
 */
must_check int landlock_restrict_writing(int dir);

#endif
