/*
 * Restricts where this process can write, by landlock(7), independent of its user and of the
 * names that it opens. Ship, and the converter of --output FILE, call it at their start.
 */
#ifndef DAEMON_COMMON_LANDLOCK_H
#define DAEMON_COMMON_LANDLOCK_H

#include "lib/base/util.h"

/*
 * From this call on the process can open, make, rename and remove only regular files in the
 * directory dir (-1: nowhere). Descriptors that are open keep their rights. Requires
 * no_new_privs. Returns 0 or -errno. Returns 0 without effect if the kernel has no landlock
 * (before 5.13, or not among its security modules), or if a container forbids it.
 */
must_check int landlock_restrict_writing(int dir);

#endif
