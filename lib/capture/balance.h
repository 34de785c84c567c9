/*
 * Compares the time for which samples of a thread were marked as running, or as ready, with the run
 * time and the wait time that the kernel counts for the thread (schedstat), and decides about
 * samples that may be wrong.
 *
 * Each tick moves threads: the tracer takes a processor, a thread that loses its processor stops
 * late, and the thread that gets it is found running. With 8 runnable threads on two processors,
 * samples that may have run made up 1.13 times the real time. And of two threads that run at the
 * same moment for a few microseconds only, one has fallen asleep before the tracer can look:
 * samples made up 0.87 of the real time of Python's queue.Queue on two processors. The sums show
 * that, although no single sample does.
 *
 * A tick also wakes threads: the tracer's timer interrupts a processor, and the kernel then wakes
 * all sleepers whose time has nearly come. Such a thread runs at each look, in the call in which it
 * slept: at 997 Hz, 8 threads that sleep for a millisecond and compute for 10 us were told running
 * for 1.06 of the real time.
 *
 * Nor does a sample show a wait for a processor before it ends: in schedstat a thread that is woken
 * looks asleep until it gets a processor. 32 threads that sleep and compute on two processors were
 * told ready for 0.62 of the time.
 *
 * A process's sums cover threads that are looked at. A thread that begins and ends between two
 * ticks is in no sum, and neither is time for which samples are missing.
 */
#ifndef LIB_CAPTURE_BALANCE_H
#define LIB_CAPTURE_BALANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/capture/proc/activity.h"

struct thread;
struct traced_process;

/* The running time, or the ready time, of a thread. */
struct thread_time {
	uint64_t told_ns; /* since the mark that was compared last */
	int64_t lack_ns;  /* what the kernel counts, less what was told */
	/*
	 * What the kernel counted when the time last grew, a tick at least, less what was told
	 * since.
	 */
	uint64_t lately_ns;
};

/* {0}: nothing is known of the thread. */
struct thread_balance {
	/* The mark that was compared last. slices 0: none since the last sample that is missing. */
	struct activity_mark mark;
	struct thread_time run, ready;
};

/* The running time, or the ready time, of all threads of a process. */
struct process_time {
	int64_t lack_ns;     /* what the kernel counts, less what was told */
	uint64_t counted_ns; /* what the kernel counts */
	double looks;	     /* sum of what it counts times the time between two looks, in ns^2 */
	/* Since a lack, or a surplus, was more than chance explains, until it is gone. */
	bool lacks, has_surplus;
};

/* The sums are halved from time to time. */
struct process_balance {
	struct process_time run, ready;
	uint64_t ticks_ns; /* length of the ticks at which threads were looked at */
	/* The last reading of the process's CPU time, and counters.running_ns then. */
	uint64_t clock_ns, clock_running_ns;
	uint64_t clock_due_ns; /* time of the next reading; 0: there is no last reading */
};

/* Compares the mark of the tick under way (thread.look), if that was read. */
void balance_compare(struct thread *th);

/*
 * To be called once in each tick: reads the process's CPU time once a second, and adds what has
 * passed to counters.compared_cpu_ns.
 */
void balance_read_clock(struct traced_process *t);

/* Notes that these ticks of the thread were told as running, or as ready. */
void balance_tell_running(struct thread *th, uint64_t ticks);
void balance_tell_ready(struct thread *th, uint64_t ticks);

/* A sample of the thread is missing: the second is not compared with the process's CPU time. */
void balance_forget(struct thread *th);

/*
 * Returns what the sample of the stop under way (thread.stop) tells, which is state in most cases:
 * - What activity_at_tick() calls ACTIVITY_MAY_HAVE_RUN counts as running, unless the process or
 * the thread has a surplus of 8 ticks: more was told than the kernel counts. Then it counts as
 * ready; if ready time has such a surplus, too, and the stop is in a call, as waiting.
 * - ACTIVITY_RAN at the end of a call that has waited counts as waiting if the process has a
 * surplus of running time that chance does not explain (three standard deviations), or had one and
 * still has some.
 */
enum activity_at_tick balance_of_stop(const struct thread *th, enum activity_at_tick state);

/*
 * Returns what a thread that was found blocked counts as at these ticks: ACTIVITY_RAN or
 * ACTIVITY_WAS_READY if its process lacks more of that time than chance explains, or has done so
 * and still lacks some, and the thread lacks as much and has just had as much. Otherwise
 * ACTIVITY_WAITED. So a thread that waited for many ticks before it ran is told so at the ticks
 * that follow, and one that sleeps is not told as running for long.
 *
 * Nothing shows where it ran: it counts as running where it was last seen to run (RECORD_RUNNING),
 * so the missing time has the functions of the time that was seen. It counts as ready where it was
 * blocked.
 */
enum activity_at_tick balance_of_blocked(const struct thread *th, uint64_t ticks);

#endif
