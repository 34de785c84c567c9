/*
 * The threads of the benchmark's target (target.c) and their counters. Each counter is written by
 * its thread and read by the first thread.
 *
 * A gap is a time in which a busy thread did not run. The kernel's counters show its cause: a
 * ptrace-stop is a voluntary context switch, and the busy threads make no other voluntary
 * switches; if another thread got the processor, the switch was involuntary; without a switch
 * the cause is a hardware interrupt or the hypervisor. schedstat has the time in which the thread
 * was runnable without a processor: a gap minus this time is the length of the stop alone.
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

/* The histogram of gaps: 32 buckets per octave, each 3 % wide, up to 17 s. */
#define GAP_SUB_BITS 5
#define GAP_OCTAVES  34
#define GAP_BUCKETS  (GAP_OCTAVES << GAP_SUB_BITS)

enum gap {
	GAP_STOP,      /* the thread was stopped by ptrace */
	GAP_STOP_NET,  /* the same gaps without the time in which the thread was runnable */
	GAP_PREEMPTED, /* another thread ran */
	GAP_OTHER,     /* no context switch: an interrupt or the hypervisor */
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
	void (*work)(struct worker *w); /* busy() or another function below */
	unsigned int index;
	int cpu; /* the processor to which the thread is bound; -1: none */
	int schedstat_fd;
	/* What the kernel had counted at the thread's last gap (gaps.c). */
	long voluntary, involuntary; /* context switches */
	uint64_t waited_ns;	     /* without a processor */
	enum wait wait;
	counter rounds;
	counter gaps[GAPS][GAP_BUCKETS]; /* number of gaps, by length */
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

/* Computes for some nanoseconds. */
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

/* Measures the clock of gaps.c. Call it before the first busy thread starts. */
void gaps_calibrate(void);

/*
 * The functions of threads, which do not return. busy() reads the clock and calculates. sleep_on()
 * waits for ever, in one of four calls (w->index modulo 4). tick() works for a moment once a
 * second. wait_often() waits for 20 ms again and again, as w->wait says, and measures the time.
 */
void busy(struct worker *w);
void sleep_on(struct worker *w);
void tick(struct worker *w);
void wait_often(struct worker *w);

#endif
