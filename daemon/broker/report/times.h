/*
 * Logs two findings at the end of a run: whether the running time in its profiles differs from the
 * CPU time that the kernel counts, and why threads had to wait for a processor.
 */
#ifndef DAEMON_BROKER_REPORT_TIMES_H
#define DAEMON_BROKER_REPORT_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/process/cpu_group.h"
#include "lib/capture/counters.h"

/* Sums of all processors since the start of the system, in clock ticks (/proc/stat). */
struct processor_times {
	uint64_t all, idle, stolen; /* stolen: the hypervisor ran something else */
};

/* What times_begin() read when capture first attached to a process. */
struct times {
	bool is_begun;
	struct processor_times processors;
	char groups[CPU_GROUP_TEXT]; /* /proc/PID/cgroup of that process */
	uint64_t throttled_ns;	     /* how long these groups were throttled until then */
	unsigned int bound; /* how many processors the process may use; 0: all, or unknown */
};

/*
 * Reads the times of the processors, how many of them process pid may use, its control groups, and
 * for how long these were throttled. What cannot be read stays 0.
 */
void times_begin(struct times *t, int32_t pid);

/*
 * Logs at most one line for each finding. rate_hz: the lowest sampling rate of the run. is_quiet:
 * only a difference of times is logged.
 */
void times_log(const struct times *t, const struct capture_counters *c, uint32_t rate_hz,
	       bool is_quiet);

/*
 * Returns true if compared_running_ns and compared_cpu_ns of c differ by more than a tenth and by
 * more than chance explains: three standard deviations. If both are below 5 s, returns false.
 * rate_hz: the lowest sampling rate of the run.
 */
bool times_differ(const struct capture_counters *c, uint32_t rate_hz);

/* For tests: parses the first line of /proc/stat. Returns false if that is not such a line. */
bool times_parse(const char *text, struct processor_times *ret);

/*
 * For tests: writes the visible cause of ready_ns, the time in which threads could run and had no
 * processor, into ret: "the processors were busy for 99 % of the time", for example. In t,
 * processors and throttled_ns are the differences between the begin and the end of the run.
 */
void times_cause(const struct times *t, uint64_t ready_ns, char *ret, size_t size);

#endif
