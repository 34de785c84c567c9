/*
 * What the tracers to compare with have in common: attach to all threads of a
 * process but the first, which only waits in the benchmark's target, and print
 * what they counted.
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
	uint64_t expected; /* threads at all ticks */
	uint64_t stops;
	uint64_t filled; /* ticks between an interrupt and its stop */
	uint64_t bytes;	 /* of stacks */
	uint64_t frames;
};

/* Reads the arguments PID HZ, attaches, and says "attached". Exits if it
 * cannot. */
struct tracer tracer_start(int argc, char **argv, uint64_t *ret_period_ns);

/* SCHED_FIFO 1, as the daemon's capture has it. */
void tracer_raise_priority(void);

/* True once SIGTERM has come; it interrupts a system call. */
bool tracer_is_over(void);

/* Prints a line of JSON and exits: the kernel lets go of the threads. */
_Noreturn void tracer_finish(const struct tracer *tracer);

#endif
