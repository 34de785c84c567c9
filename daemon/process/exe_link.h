/*
 * Finds out why a section's exe can match no process: the path does not exist, or is a
 * symbolic link. The kernel's link /proc/PID/exe has the path of the file itself, so on
 * Debian exe = /usr/bin/redis-server, a link to redis-check-rdb, matches nothing. Used when
 * the configuration is checked, and by doctor.
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
 * Resolves all symbolic links of the path on this host. Can hang if a file system does not
 * answer: the broker leaves the call to its helper (daemon/broker/files/files.h). Returns 0
 * or an error of realpath(3), negative.
 */
must_check int exe_link_resolve(const char *exe, char ret[PATH_MAX]);

/*
 * Describes why no process can have this exe. error: the return value of exe_link_resolve();
 * resolved: its path, which is read only if error is 0. Writes "" if a process can have this exe,
 * or if the error leaves that open.
 */
#define EXE_LINK_TEXT_MAX (PATH_MAX + 128)
void exe_link_text(const char *exe, int error, const char *resolved, char ret[EXE_LINK_TEXT_MAX]);

#endif
