/*
 * Reads the CPU quota of a control group. When the quota is used up, all processes of the group
 * stop until its period ends. A tracer in the group then stops even while it has a thread stopped.
 */
#ifndef DAEMON_CAPTURE_CPU_QUOTA_H
#define DAEMON_CAPTURE_CPU_QUOTA_H

#include <stddef.h>

/*
 * Returns the least quota of a process's group and the groups above it, in percent of one core, 1
 * at least; 0: none, or not known. groups: the n bytes of /proc/PID/cgroup. mount: the directory of
 * the hierarchies of both versions, "/sys/fs/cgroup". In a container only its own groups are
 * visible.
 */
unsigned int cpu_quota_least(const char *groups, size_t n, const char *mount);

/* Returns cpu_quota_least() for the groups of this process. */
unsigned int cpu_quota_own(void);

#endif
