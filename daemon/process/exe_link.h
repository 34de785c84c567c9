/*
 * Finds out why the key exe of a [target] section can match no process: the path does not exist, or
 * is a symbolic link. The key is compared with the link /proc/PID/exe, which has the path of the
 * file itself. So on Debian exe = /usr/bin/redis-server, a link to redis-check-rdb, matches
 * nothing. Used when the configuration is checked, and by `sentry-profctl doctor`.
 */
#ifndef DAEMON_PROCESS_EXE_LINK_H
#define DAEMON_PROCESS_EXE_LINK_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/util.h"

/* Returns true if exe is a single path: absolute and without a wildcard. */
bool exe_link_is_path(const char *exe);

/*
 * Resolves all symbolic links in the path exe. Can hang if a file system does not answer: the
 * broker leaves the call to its helper (daemon/broker/files/files.h). Returns 0 or -errno of
 * realpath(3).
 */
must_check int exe_link_resolve(const char *exe, char ret[PATH_MAX]);

/*
 * Writes why no process can have this exe, as a text for the user. error is the return value of
 * exe_link_resolve(exe), 0 or -errno. resolved is the path that exe_link_resolve() wrote, and is
 * read only if error is 0. Writes "" if no reason is known: resolved is equal to exe, or error is
 * neither -ENOENT nor -ENOTDIR.
 */
#define EXE_LINK_TEXT_MAX (PATH_MAX + 128)
void exe_link_text(const char *exe, int error, const char *resolved, char ret[EXE_LINK_TEXT_MAX]);

#endif
