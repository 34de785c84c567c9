/*
 * Reads the kernel's clocks. Only code in daemon/ calls the functions that read a clock. Code in
 * lib/ and proto/ takes times as arguments, or takes a function pointer, such as clock_fn, if it
 * needs a time in the middle of an operation. So tests can choose the times.
 */
#ifndef LIB_BASE_CLOCK_H
#define LIB_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

#include "lib/base/util.h"

/* A function such as clock_mono_ns(). The code that takes a clock_fn says which clock. */
typedef uint64_t (*clock_fn)(void);

/* Returns the time of the clock, which must exist, in ns. */
static inline uint64_t clock_read_ns(clockid_t id)
{
	struct timespec ts;

	/* clock_gettime(2) fails only for an unknown id or a bad address. */
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

/* CLOCK_PROCESS_CPUTIME_ID: processor time of the calling process, all its threads. */
static inline uint64_t clock_cpu_ns(void)
{
	return clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* Returns the id of the clock of a process's processor time, as clock_getcpuclockid(3) makes it. */
static inline clockid_t clock_of_process(int32_t pid)
{
	return (clockid_t)(~(uint32_t)pid << 3 | 2);
}

/*
 * clock_process_ns() reads the processor time of a process in ns, ended threads included. The time
 * of a thread that runs may lack what it used since the scheduler's last update. Returns 0, or the
 * error of clock_gettime(2): there is no such process.
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

/* A hundred years, in seconds. clock_duration_ns() refuses longer durations. */
#define CLOCK_DURATION_MAX_S INT64_C(3155760000)

/*
 * Converts a duration that another process chose, such as a struct timespec or timeval, to ns.
 * unit_ns is the unit of fractions: 1, or NS_PER_US. Returns false, and writes nothing, if a part
 * is negative, if the fractions make a second or more, or if seconds exceeds CLOCK_DURATION_MAX_S.
 * So the sum of a clock's time and the result does not overflow.
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

/* Context switches of the calling process so far: because it waited, or was preempted. */
struct clock_switches {
	uint64_t waited;
	uint64_t preempted;
};
typedef void (*clock_switches_fn)(struct clock_switches *ret);

static inline void clock_switches(struct clock_switches *ret)
{
	struct rusage usage;

	/* getrusage(2) fails only for a bad address. */
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
