/*
 * The clocks. daemon/ reads them; lib/ and proto/ take times as arguments, or
 * a clock_fn where a time is needed in the middle of an operation.
 */
#ifndef LIB_BASE_CLOCK_H
#define LIB_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

#include "lib/base/util.h"

/* Returns nanoseconds of some clock that never goes back. */
typedef uint64_t (*clock_fn)(void);

static inline uint64_t clock_read_ns(clockid_t id)
{
	struct timespec ts;

	/* Fails for an unknown id or a bad address only. */
	(void)clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* CLOCK_MONOTONIC: ticks, pauses, the heartbeat. */
static inline uint64_t clock_mono_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

/* CLOCK_BOOTTIME: deadlines that have to go on while the machine sleeps. */
static inline uint64_t clock_boot_ns(void)
{
	return clock_read_ns(CLOCK_BOOTTIME);
}

/* CLOCK_PROCESS_CPUTIME_ID: what the caller itself has used. */
static inline uint64_t clock_cpu_ns(void)
{
	return clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/*
 * What the threads of a process have run, in ns, those included that have
 * ended: as of the last time that the scheduler wrote it down. 0 or -errno.
 */
typedef int (*clock_process_fn)(int32_t pid, uint64_t *ret);

static inline int clock_process_ns(int32_t pid, uint64_t *ret)
{
	/* What the kernel calls CPUCLOCK_SCHED: see clock_getres(2). */
	const clockid_t clock = (clockid_t)(~(uint32_t)pid << 3 | 2);
	struct timespec ts;

	if (clock_gettime(clock, &ts) < 0)
		return -errno;
	*ret = (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
	return 0;
}

/* Longer ones are taken for no limit: a hundred years. */
#define CLOCK_DURATION_MAX_S INT64_C(3155760000)

/*
 * A length of time that another process has set, in seconds and fractions of
 * unit_ns, into ns. False, and nothing written: it is none that the kernel
 * would take, or longer than CLOCK_DURATION_MAX_S. Added to a clock it does not
 * wrap.
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

/* How often the caller has given its processor up to wait, and lost it. */
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

/* CLOCK_REALTIME: read once per profiler_id, and for sent_at. */
static inline uint64_t clock_wall_ns(void)
{
	return clock_read_ns(CLOCK_REALTIME);
}

#endif
