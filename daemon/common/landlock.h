/* Landlock: where a process may write, whatever names it opens. */
#ifndef DAEMON_COMMON_LANDLOCK_H
#define DAEMON_COMMON_LANDLOCK_H

#include "lib/base/util.h"

/*
 * From here on nothing is opened for writing, made, renamed or removed but
 * files in dir (-1: nowhere). What is open stays so. Needs no_new_privs.
 * Returns 0, also where the kernel cannot (before 5.13, or without landlock
 * among its security modules) or may not (in a container), or -errno.
 */
must_check int landlock_restrict_writing(int dir);

#endif
