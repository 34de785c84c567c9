/*
 * What a run says about the times of its profiles at its end: whether the running time that they
 * tell is the CPU time that the kernel counts, and why threads had to wait for a processor.
 */
#ifndef DAEMON_BROKER_REPORT_TIMES_H
#define DAEMON_BROKER_REPORT_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/process/cpu_group.h"
#include "lib/capture/counters.h"

/* Since the start of the system, in ticks of the system's clock. */
struct processor_times {
	uint64_t all, idle, stolen; /* stolen: the hypervisor ran something else */
};

/* What the broker read when capture first attached to a process. */
struct times {
	bool is_begun;
	struct processor_times processors;
	char groups[CPU_GROUP_TEXT]; /* /proc/PID/cgroup of that process */
	uint64_t throttled_ns;
	unsigned int bound; /* to so many processors; 0: the process may use all */
};

/*
 * Reads the processors' times, which of them the process may use, and its groups and their
 * throttled time.
 */
void times_begin(struct times *t, int32_t pid);

/*
 * Logs at most one line for each of the two questions.
 * rate_hz: the lowest rate of the run. is_quiet: only what makes the times wrong is logged.
 */
void times_log(const struct times *t, const struct capture_counters *c, uint32_t rate_hz,
	       bool is_quiet);

/*
 * Returns true if the two sums that capture compared differ by more than a tenth and by more than
 * chance explains: three standard deviations. rate_hz: the lowest rate of the run.
 */
bool times_differ(const struct capture_counters *c, uint32_t rate_hz);

/* For tests: parses the first line of /proc/stat. Returns false if that is not such a line. */
bool times_parse(const char *text, struct processor_times *ret);

/*
 * For tests: writes the cause of ready time that can be seen, "the processors were busy for 99 % of
 * the time" or another, into ret. t: processors and throttled_ns are the differences between the
 * begin and the end of the run.
 */
void times_cause(const struct times *t, uint64_t ready_ns, char *ret, size_t size);

#endif
