/*
 * Logs two findings at the end of a run, which here is the time from the start of sentry-profd to
 * its end:
 * - that the running time in the profiles differs from the CPU time that the kernel counts;
 * - why threads had to wait for a processor.
 */
#ifndef DAEMON_BROKER_REPORT_TIMES_H
#define DAEMON_BROKER_REPORT_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/process/cpu_group.h"
#include "lib/capture/counters.h"

/* Sums of all processors since the start of the system, in units of USER_HZ (/proc/stat). */
struct processor_times {
	uint64_t all, idle, stolen; /* stolen: the hypervisor ran something else */
};

/* What times_begin() read when capture first attached to a process. */
struct times {
	bool is_begun;
	struct processor_times processors;
	char groups[CPU_GROUP_TEXT];	 /* /proc/PID/cgroup of that process */
	uint64_t throttled_ns;		 /* how long these groups had been throttled by then */
	unsigned int allowed_processors; /* how many that process may use; 0: all, or unknown */
};

/*
 * Sets *t: reads the times of the processors, how many processors process pid may use, its control
 * groups, and how long these have been throttled. A member that cannot be read is 0.
 */
void times_begin(struct times *t, int32_t pid);

/*
 * Logs a line if times_differ(). Unless is_quiet is set, logs another line, with the cause, if
 * threads waited for a processor for at least 1 s and at least a tenth of the time in which they
 * could run. The second line needs an earlier times_begin(t). c: the sums of the counters of all
 * targets. rate_hz: the lowest sampling rate of the run.
 */
void times_log(const struct times *t, const struct capture_counters *c, uint32_t rate_hz,
	       bool is_quiet);

/*
 * Returns true if c->compared_running_ns, the running time in the profiles, and
 * c->compared_cpu_ns, the kernel's CPU time, differ by more than a tenth of the latter and by more
 * than three standard deviations, which chance does not explain. If both are below 5 s, returns
 * false. rate_hz: the lowest sampling rate of the run.
 */
bool times_differ(const struct capture_counters *c, uint32_t rate_hz);

/* For tests: parses the first line of /proc/stat. Returns false if that is not such a line. */
bool times_parse(const char *text, struct processor_times *ret);

/*
 * For tests: writes into ret why threads were runnable without a processor for ready_ns: "the
 * processors were busy for 99 % of the time", for example. t->processors and t->throttled_ns: by
 * how much these times have grown from the begin to the end of the run. size: of ret, in bytes.
 */
void times_cause(const struct times *t, uint64_t ready_ns, char *ret, size_t size);

#endif
