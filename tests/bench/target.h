/*
 * The threads of the benchmark's target (target.c), and what they count. A
 * counter has one writer, its thread; main reads it.
 *
 * Whose gap is it? A stop by ptrace is a voluntary context switch in the
 * kernel's counters, and the busy threads make none of their own; a thread
 * whose processor was given to another has an involuntary one; what has
 * neither is an interrupt, or the hypervisor. Time on the run queue is in
 * schedstat: a gap less that time is what only the stop took.
 */
#ifndef TESTS_BENCH_TARGET_H
#define TESTS_BENCH_TARGET_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/util.h"

#define NOINLINE __attribute__((noinline, noclone))

/* 32 buckets an octave, 3 % each, up to 17 s. */
#define GAP_SUB_BITS 5
#define GAP_OCTAVES  34
#define GAP_BUCKETS  (GAP_OCTAVES << GAP_SUB_BITS)

enum gap {
	GAP_STOP,      /* with a stop in it */
	GAP_STOP_NET,  /* the same gaps without the wait for a processor */
	GAP_PREEMPTED, /* another thread ran */
	GAP_OTHER,     /* neither: an interrupt */
	GAPS,
};

enum wait {
	WAIT_EPOLL,
	WAIT_NANOSLEEP,
	WAIT_POLL,
	WAITS,
};

typedef _Atomic uint64_t counter;

struct worker {
	void (*bottom)(struct worker *w);
	unsigned int index;
	int cpu; /* to be bound to; -1: none */
	int schedstat_fd;
	long voluntary, involuntary;
	uint64_t waited_ns;
	enum wait wait;
	counter rounds;
	counter gaps[GAPS][GAP_BUCKETS];
	counter gap_ns[GAPS];
	counter waits, wait_ns, wait_max_ns;
};

static inline uint64_t get(counter *c)
{
	return atomic_load_explicit(c, memory_order_relaxed);
}

static inline void set(counter *c, uint64_t n)
{
	atomic_store_explicit(c, n, memory_order_relaxed);
}

static inline void add(counter *c, uint64_t n)
{
	set(c, get(c) + n);
}

/* Some nanoseconds of work. */
static inline uint64_t calculate(uint64_t x)
{
	for (int i = 0; i < 8; i++)
		x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
	return x;
}

static inline _Noreturn void die(const char *what)
{
	perror(what);
	_exit(EXIT_FAILURE);
}

/* gaps.c: before the first thread that is busy. */
void gaps_calibrate(void);

/*
 * What a thread does, for ever: read the clock and calculate; wait, in one of
 * four ways; work for a moment once a second; wait for 20 ms again and again,
 * and take the time.
 */
void busy(struct worker *w);
void sleep_on(struct worker *w);
void tick(struct worker *w);
void wait_often(struct worker *w);

#endif
