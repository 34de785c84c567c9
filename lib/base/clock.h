/*
 * Reads the kernel's clocks. Only daemon/ calls the functions that read a clock: code in lib/ and
 * proto/ takes times as arguments, or a clock_fn where it needs a time in the middle of an
 * operation.
 */
#ifndef LIB_BASE_CLOCK_H
#define LIB_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

#include "lib/base/util.h"

/* Returns nanoseconds of a clock that never goes back. */
typedef uint64_t (*clock_fn)(void);

static inline uint64_t clock_read_ns(clockid_t id)
{
	struct timespec ts;

	/* Fails for an unknown id or a bad address only. */
	(void)clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* CLOCK_MONOTONIC: for ticks, pauses and the heartbeat. */
static inline uint64_t clock_mono_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

/* CLOCK_BOOTTIME: for deadlines that go on while the machine sleeps. */
static inline uint64_t clock_boot_ns(void)
{
	return clock_read_ns(CLOCK_BOOTTIME);
}

/* CLOCK_PROCESS_CPUTIME_ID: processor time of the calling process. */
static inline uint64_t clock_cpu_ns(void)
{
	return clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* The clock CPUCLOCK_SCHED of another process: see clock_getres(2). */
static inline clockid_t clock_of_process(int32_t pid)
{
	return (clockid_t)(~(uint32_t)pid << 3 | 2);
}

/*
 * Reads the processor time in ns of a process, ended threads included. A running thread's time is
 * as of the scheduler's last update. Returns 0 or -errno.
 */
typedef int (*clock_process_fn)(int32_t pid, uint64_t *ret);

static inline int clock_process_ns(int32_t pid, uint64_t *ret)
{
	struct timespec ts;

	if (clock_gettime(clock_of_process(pid), &ts) < 0)
		return -errno;
	*ret = (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
	return 0;
}

/* A hundred years: longer durations stand for no limit. */
#define CLOCK_DURATION_MAX_S INT64_C(3155760000)

/*
 * Converts a duration that another process has set, seconds and fractions in units of unit_ns, to
 * ns. Returns false, and writes nothing, if the kernel would refuse the duration or it is longer
 * than CLOCK_DURATION_MAX_S. So the sum of a clock and the result does not overflow.
 */
static inline bool clock_duration_ns(int64_t seconds, int64_t fractions, uint64_t unit_ns,
				     uint64_t *ret)
{
	if (seconds < 0 || seconds > CLOCK_DURATION_MAX_S || fractions < 0 ||
	    (uint64_t)fractions >= NS_PER_SEC / unit_ns)
		return false;
	*ret = (uint64_t)seconds * NS_PER_SEC + (uint64_t)fractions * unit_ns;
	return true;
}

/* Context switches of the calling process: it waited, or was preempted. */
struct clock_switches {
	uint64_t waited;
	uint64_t preempted;
};
typedef void (*clock_switches_fn)(struct clock_switches *ret);

static inline void clock_switches(struct clock_switches *ret)
{
	struct rusage usage;

	/* Fails for a bad address only. */
	(void)getrusage(RUSAGE_SELF, &usage);
	*ret = (struct clock_switches){
		.waited = (uint64_t)usage.ru_nvcsw,
		.preempted = (uint64_t)usage.ru_nivcsw,
	};
}

/* CLOCK_REALTIME: Unix time, for what leaves this machine. */
static inline uint64_t clock_wall_ns(void)
{
	return clock_read_ns(CLOCK_REALTIME);
}

#endif
