/* Compares the namespaces of processes (namespaces(7)), by the files /proc/PID/ns/NAME. */
#ifndef DAEMON_PROCESS_NAMESPACE_H
#define DAEMON_PROCESS_NAMESPACE_H

#include <stdbool.h>

/*
 * Returns true if both paths lead to the same namespace. A path is that of a link in /proc/PID/ns,
 * or that of a descriptor of a namespace (procfs_own_fd() in lib/base/procfs.h). Returns false if a
 * path cannot be followed, for example because the process has ended, or because it belongs to
 * another user and this process lacks CAP_SYS_PTRACE.
 */
bool namespace_is_same(const char *path, const char *other);

#endif
