/* Compares the namespaces of processes (namespaces(7)) by their files: /proc/PID/ns/NAME. */
#ifndef DAEMON_PROCESS_NAMESPACE_H
#define DAEMON_PROCESS_NAMESPACE_H

#include <stdbool.h>

/*
 * Returns true if both paths lead to the same namespace. A path is that of a link in /proc/PID/ns,
 * or of an open namespace (procfs_own_fd()). Returns false if one cannot be read, for example
 * because the process has ended, or another user's is read without CAP_SYS_PTRACE.
 */
bool namespace_is_same(const char *path, const char *other);

#endif
