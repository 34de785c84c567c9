/*
 * Reads the CPU quota of the control groups (cgroups(7)) of a process. When the quota of a group is
 * used up, the kernel throttles the group: its processes do not run until the period ends. A tracer
 * that is throttled cannot continue a thread that it holds in a ptrace-stop; so the daemon warns.
 *
 * Parameters of the functions: groups is the text of /proc/PID/cgroup, of n bytes; mount is
 * CPU_GROUP_MOUNT, except in tests. Version 2 of cgroups is mounted at this directory; the
 * hierarchies of version 1 are mounted at its subdirectories, such as "cpu,cpuacct". In a container
 * only the container's own groups are visible, so a quota of a group above them is not found.
 */
#ifndef DAEMON_PROCESS_CPU_GROUP_H
#define DAEMON_PROCESS_CPU_GROUP_H

#include <stddef.h>
#include <stdint.h>

#define CPU_GROUP_MOUNT "/sys/fs/cgroup"

/* Bytes for the text of /proc/PID/cgroup: a line for each hierarchy; a path is rarely long. */
#define CPU_GROUP_TEXT 8192

/*
 * Returns the least of the quotas of the process's groups and of the groups above them, in percent
 * of one processor, at least 1; 0: there is no quota, or it cannot be read.
 */
unsigned int cpu_group_quota(const char *groups, size_t n, const char *mount);

/* Returns cpu_group_quota() for the groups of this process. */
unsigned int cpu_group_own_quota(void);

/*
 * Returns for how long, in ns, a group has been throttled since it was made: the longest such time
 * of the process's groups and of the groups above them. 0: never, or the times cannot be read.
 */
uint64_t cpu_group_throttled_ns(const char *groups, size_t n, const char *mount);

#endif
