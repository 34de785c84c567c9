/*
 * The path that a section's exe names, compared with what the link
 * /proc/PID/exe of a process can say: that one is the path of the file itself,
 * never of a symbolic link to it. So exe = /usr/bin/redis-server matches
 * nothing on Debian, where that is a link to redis-check-rdb.
 */
#ifndef DAEMON_PROCESS_EXE_LINK_H
#define DAEMON_PROCESS_EXE_LINK_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/util.h"

/* True if exe is one path: absolute, without a wildcard. */
bool exe_link_is_path(const char *exe);

/*
 * Follows all links of the path, on this host. May hang where a file system
 * does not answer: the broker leaves it to the helper of daemon/broker/files/files.h.
 * Returns 0 or an error of realpath(3).
 */
must_check int exe_link_resolve(const char *exe, char ret[PATH_MAX]);

/*
 * What keeps a process from having this exe, in words: resolved is the answer
 * of exe_link_resolve, or error its error. "" if nothing does.
 */
#define EXE_LINK_TEXT_MAX (PATH_MAX + 128)
void exe_link_text(const char *exe, int error, const char *resolved, char ret[EXE_LINK_TEXT_MAX]);

#endif
