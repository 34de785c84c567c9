/*
 * Corrects the states of samples by sums. For each thread and each process the module compares the
 * time that samples say the thread was running, or ready (runnable without a processor), with the
 * run time and the wait time that the kernel counts (schedstat). It decides by the difference about
 * samples that may be wrong. Used at each look (the check of a thread at a tick) and at each stop.
 *
 * Single samples are wrong because a tick disturbs what it measures. Without a correction:
 * - The tracer takes a processor at a tick. The thread that loses it stops late, and the thread
 *   that gets it is found running. With 8 runnable threads on two processors, samples that may have
 *   run made up 1.13 times the real run time.
 * - A thread that runs for a few microseconds can fall asleep before the tracer looks at it. For
 *   Python's queue.Queue on two processors, samples made up 0.87 of the real run time.
 * - The tracer's timer interrupts a processor, and the kernel then wakes all sleepers whose time
 *   has nearly come. Each look finds such a thread running, in the call in which it slept: 1.06 of
 *   the real run time for 8 threads at 997 Hz that sleep for a millisecond and compute for 10 us.
 * - schedstat counts a wait for a processor when it ends, so a thread that waits looks asleep. For
 *   32 threads that sleep and compute on two processors, samples made up 0.62 of the ready time.
 *
 * Neither a thread that begins and ends between two ticks, nor time for which samples are missing,
 * is in the sums. In the names below, "told" time is the time that samples say, "counted" time is
 * the kernel's. A mark is a reading of schedstat (proc/activity.h).
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
	int64_t lack_ns;  /* counted less told time since the thread is known */
	/*
	 * The last growth of the counted time, or the length of a tick if that is more, less the
	 * time told since.
	 */
	uint64_t lately_ns;
};

/* {0}: nothing is known of the thread. */
struct thread_balance {
	/* The mark that was compared last. slices 0: none since a sample was missing. */
	struct activity_mark mark;
	struct thread_time run, ready;
};

/* The running time, or the ready time, of all threads of a process. */
struct process_time {
	int64_t lack_ns; /* counted less told time; negative: a surplus of told time */
	uint64_t counted_ns;
	double looks; /* sum over looks: counted time * time since the look before, in ns^2 */
	/* True from when a lack, or a surplus, is more than chance explains until it is 0. */
	bool lacks, has_surplus;
};

/* All sums are halved from time to time, so that recent time counts more. */
struct process_balance {
	struct process_time run, ready;
	uint64_t ticks_ns; /* length of the ticks that were compared, summed over threads */
	/* The last reading of the process's CPU time, and counters.running_ns then. */
	uint64_t clock_ns, clock_running_ns;
	uint64_t clock_due_ns; /* time of the next reading; 0: there is no last reading */
};

/*
 * Called at a look: adds what the kernel has counted since the mark that was compared last, less
 * the told time, to the sums. Does nothing if no mark was read for the tick under way
 * (thread.look).
 */
void balance_compare(struct thread *th);

/*
 * Called once in each tick of the process. Once a second reads the process's CPU time, and adds
 * what has passed to compared_cpu_ns and compared_running_ns of the counters.
 */
void balance_read_clock(struct traced_process *t);

/*
 * Adds ticks of the thread that its records mark as running, or as ready, to the told time, and to
 * running_ns or ready_ns of the counters.
 */
void balance_tell_running(struct thread *th, uint64_t ticks);
void balance_tell_ready(struct thread *th, uint64_t ticks);

/*
 * Called when a sample of the thread is missing. Leaves the thread's time from the last comparison
 * to the next one out of the sums, and this second out of compared_cpu_ns and compared_running_ns.
 */
void balance_forget(struct thread *th);

/*
 * Returns the state for the sample of the stop under way (thread.stop). state is the result of
 * activity_at_tick(), which is returned except in two cases:
 * - ACTIVITY_MAY_HAVE_RUN becomes ACTIVITY_RAN, unless the thread or its process has more than 8
 *   ticks too much told running time. Then it becomes ACTIVITY_WAS_READY; or ACTIVITY_WAITED, if
 *   the process also has more than 8 ticks too much told ready time, and the stop is in a call.
 * - ACTIVITY_RAN in a call whose wait has ended (thread.stop.woken) becomes ACTIVITY_WAITED while
 *   the process's run.has_surplus is true. Chance explains up to three standard deviations.
 */
enum activity_at_tick balance_of_stop(const struct thread *th, enum activity_at_tick state);

/*
 * Returns the state for a look that found the thread blocked and stands for this number of ticks.
 * Returns ACTIVITY_RAN if told running time is missing in three ways:
 * - in the process: run.lacks is true;
 * - in the thread: it lacks more than these ticks;
 * - lately: the thread's lately_ns is these ticks at least, so a thread that sleeps does not count
 *   as running for long.
 *
 * Otherwise returns ACTIVITY_WAS_READY if the same holds for the ready time, else ACTIVITY_WAITED.
 * Nothing shows where the thread ran. The caller writes RECORD_RUNNING, by which it counts as
 * running where it was last seen to run. A ready thread counts as ready where it was blocked.
 */
enum activity_at_tick balance_of_blocked(const struct thread *th, uint64_t ticks);

#endif
