/*
 * Common code of the tracers bare.c, near.c and naive.c, which the benchmark compares with the
 * daemon. It attaches to all threads of a process, and prints the counters at the end. The first
 * thread is left out, because in the benchmark's target it only waits.
 */
#ifndef TESTS_BENCH_TRACER_H
#define TESTS_BENCH_TRACER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct tracer {
	pid_t *tids;
	size_t n;
	uint64_t ticks;
	uint64_t expected; /* the sum of the threads at all ticks */
	uint64_t stops;
	uint64_t filled; /* ticks between an interrupt and its stop */
	uint64_t bytes;	 /* of stacks that were read */
	uint64_t frames;
};

/* Reads the arguments PID HZ, and lists the threads. Exits on an error. */
struct tracer tracer_start(int argc, char **argv, uint64_t *ret_period_ns);

/* Attaches the calling thread to this thread, or exits. */
void tracer_attach(pid_t tid);

/* Attaches to all threads, and prints "attached". */
void tracer_attach_all(const struct tracer *tracer);

/* Prints "attached", for which the benchmark waits. */
void tracer_say_attached(void);

/*
 * Reads registers and stack of a stopped thread, and counts the stop. The stack is read as by the
 * daemon: from the red zone up to the thread's own data.
 */
void tracer_sample(struct tracer *tracer, pid_t tid);

/* Sets SCHED_FIFO, priority 1, as the daemon's capture does. */
void tracer_raise_priority(void);

/* Returns true after SIGTERM, which interrupts a system call. */
bool tracer_is_over(void);

/* Prints a line of JSON and exits, at which the kernel detaches the threads. */
_Noreturn void tracer_finish(const struct tracer *tracer);

#endif
