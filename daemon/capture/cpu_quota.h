/*
 * The most that a control group lets its processes use of the processors.
 * Beyond it all of them stand until its period ends, a tracer between a stop
 * and its end as well.
 */
#ifndef DAEMON_CAPTURE_CPU_QUOTA_H
#define DAEMON_CAPTURE_CPU_QUOTA_H

#include <stddef.h>

/*
 * The least quota of a process's group and those above it, in percent of one
 * core, 1 at least; 0: none, or not known. groups: the n bytes of
 * /proc/PID/cgroup; mount: where the hierarchies are, both versions,
 * "/sys/fs/cgroup". In a container they are those that it may see.
 */
unsigned int cpu_quota_least(const char *groups, size_t n, const char *mount);

/* Of this process. */
unsigned int cpu_quota_own(void);

#endif
