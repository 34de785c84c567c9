/*
 * The CPU quota of a process's control groups. When the quota of a group is used up, all processes
 * of the group stop until its period ends (they are throttled). A tracer in such a group can be
 * throttled while it holds a thread in a ptrace-stop; the thread then waits, too.
 *
 * groups: the n bytes of /proc/PID/cgroup. mount: where the hierarchies are mounted,
 * CPU_GROUP_MOUNT: version 2 there itself, version 1 in directories below it. In a container only
 * its own groups are visible.
 */
#ifndef DAEMON_PROCESS_CPU_GROUP_H
#define DAEMON_PROCESS_CPU_GROUP_H

#include <stddef.h>
#include <stdint.h>

#define CPU_GROUP_MOUNT "/sys/fs/cgroup"

/* Room for /proc/PID/cgroup: each hierarchy of version 1 has a line; a path is rarely long. */
#define CPU_GROUP_TEXT 8192

/*
 * Returns the least quota of a process's group and the groups above it, in percent of one core, 1
 * at least; 0: none, or not known.
 */
unsigned int cpu_group_quota(const char *groups, size_t n, const char *mount);

/* Returns cpu_group_quota() for the groups of this process. */
unsigned int cpu_group_own_quota(void);

/*
 * Returns for how long in ns the process's group, or one of the groups above it, has been
 * throttled: of these groups the longest time; 0: never, or not known.
 */
uint64_t cpu_group_throttled_ns(const char *groups, size_t n, const char *mount);

#endif
