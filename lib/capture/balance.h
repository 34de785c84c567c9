/*
 * Decides whether a sample says that its thread was running, ready (runnable without a processor)
 * or waiting, where one look or stop can be wrong. For this the module keeps two kinds of sums for
 * each thread and each process:
 * - told time: how long samples say that threads were running, and ready;
 * - counted time: the run time and the wait time that the kernel counts (schedstat).
 *
 * The difference between the two decides the state of a sample that may be wrong. Example, with
 * ticks of 10 ms: a thread runs for 2 ms after each tick, and each look finds it asleep. After 41
 * ticks the counted time is 82 ms and the told time 0. The difference is above 8 ticks, so the next
 * samples say that the thread ran. Each adds 10 ms to the told time, until that has caught up.
 *
 * Order of calls: at a look (the check of a thread at a tick) balance_compare(), and if the thread
 * is blocked, balance_of_blocked(); at a stop balance_of_stop(). Then balance_tell_running() or
 * balance_tell_ready(), if the record says so. A mark is a reading of schedstat (proc/activity.h).
 *
 * Single samples are wrong because a tick disturbs what it measures. Without a correction:
 * - The tracer takes a processor at a tick. The thread that loses the processor stops late, and the
 *   next thread to get it is found running. With 8 runnable threads on two processors, the samples
 *   of threads that ran or may have run made up 1.13 times the real run time.
 * - A thread that runs for a few microseconds can fall asleep before the tracer looks at it. For
 *   Python's queue.Queue on two processors, samples made up 0.87 of the real run time.
 * - The tracer's timer interrupts a processor, and the kernel then wakes all sleepers whose time
 *   has nearly come. Each look finds such a thread running, in the call in which it slept: 1.06 of
 *   the real run time for 8 threads at 997 Hz that sleep for a millisecond and compute for 10 us.
 * - schedstat counts a wait for a processor when it ends, so a thread that waits looks asleep. For
 *   32 threads that sleep and compute on two processors, samples made up 0.62 of the ready time.
 *
 * The sums leave out threads that begin and end between two ticks, and time for which samples are
 * missing.
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
	uint64_t told_ns; /* told time since the mark that was compared last */
	int64_t lack_ns;  /* counted minus told time of all comparisons; negative: too much told */
	/*
	 * The part of the last growth of the counted time that samples have not told yet, for
	 * balance_of_blocked(). A comparison that finds a growth sets lately_ns to the growth, or
	 * to the length of a tick if that is more. Every other comparison subtracts told_ns, down
	 * to 0.
	 */
	uint64_t lately_ns;
};

/* {0}: no mark of the thread was compared yet. */
struct thread_balance {
	/*
	 * The mark that was compared last. slices 0: no mark was compared yet, or a sample was
	 * missing after the comparison.
	 */
	struct activity_mark mark;
	struct thread_time run, ready;
};

/* The running time, or the ready time, of all threads of a process. */
struct process_time {
	int64_t lack_ns; /* counted minus told time; negative: too much was told */
	uint64_t counted_ns;
	/*
	 * Each comparison adds its counted time * the length of the ticks since the look before
	 * (ns^2). The variance of lack_ns is this sum * (1 - counted_ns / ticks_ns).
	 */
	double spread;
	/*
	 * lacks: too little was told. It becomes true when lack_ns is above 8 ticks, and above
	 * three standard deviations, which chance does not explain. It stays true until lack_ns is
	 * 0 or less. has_surplus: the same for too much told, with the opposite sign.
	 */
	bool lacks, has_surplus;
};

/*
 * When ticks_ns exceeds the length of 8,192 ticks times the number of threads, the sums of the
 * process are halved (`spread`, which is in ns^2, is quartered), so that recent time counts more.
 */
struct process_balance {
	struct process_time run, ready;
	uint64_t ticks_ns; /* length of the ticks that were compared, summed over threads */
	/* The last reading of the process's CPU time, and counters.running_ns then. */
	uint64_t clock_ns, clock_running_ns;
	/* Time of the next reading; 0: no reading yet, or a sample is missing since the last one.
	 */
	uint64_t clock_due_ns;
};

/*
 * Called at a look: adds the counted and the told time since the mark that was compared last to the
 * sums of the thread and of its process. The look's mark (thread.look) is then the one compared
 * last. Does nothing if no mark was read for the tick under way.
 */
void balance_compare(struct thread *th);

/*
 * Called once in each tick of the process. Once a second reads the process's CPU time. Adds what
 * the CPU time and the counter running_ns have grown since the last reading to the counters
 * compared_cpu_ns and compared_running_ns (counters.h).
 */
void balance_read_clock(struct traced_process *t);

/*
 * Call this when records of the thread mark it as running, or as ready, for this number of ticks.
 * Adds the length of these ticks to the told time, and to running_ns or ready_ns of the counters.
 */
void balance_tell_running(struct thread *th, uint64_t ticks);
void balance_tell_ready(struct thread *th, uint64_t ticks);

/*
 * Called when a sample of the thread is missing. Leaves the thread's time from the last comparison
 * to the next one out of the sums. Leaves the time from the last balance_read_clock() reading to
 * the next one out of compared_cpu_ns and compared_running_ns.
 */
void balance_forget(struct thread *th);

/*
 * Returns the state for the sample of the stop under way (thread.stop). state: the result of
 * activity_at_tick(). In the table, a thread or process has too much of a time if samples have told
 * more of it than the kernel counted, by over 8 ticks (lack_ns is below -8 ticks). The first row
 * that applies decides (states without ACTIVITY_):
 *
 *   state         what holds                                                        result
 *   ------------  ----------------------------------------------------------------  ---------
 *   MAY_HAVE_RUN  neither the thread nor the process has too much running time      RAN
 *   MAY_HAVE_RUN  the process has too much ready time, and the stop is in a call    WAITED
 *   MAY_HAVE_RUN  in all other cases                                                WAS_READY
 *   RAN           the stop is in a call whose wait has ended (thread.stop.woken),   WAITED
 *                 and run.has_surplus of the process is true
 *   any           in all other cases                                                unchanged
 */
enum activity_at_tick balance_of_stop(const struct thread *th, enum activity_at_tick state);

/*
 * Returns the state for a look that found the thread blocked and stands for this number of ticks.
 * Returns ACTIVITY_RAN if all of this holds for the running time:
 * - run.lacks of the process is true;
 * - run.lack_ns of the thread is more than the length of these ticks;
 * - run.lately_ns of the thread is that length at least. A thread that goes on sleeping uses it up,
 *   and then no longer counts as running.
 *
 * Otherwise returns ACTIVITY_WAS_READY if the same holds for the ready time, else ACTIVITY_WAITED.
 */
enum activity_at_tick balance_of_blocked(const struct thread *th, uint64_t ticks);

#endif
