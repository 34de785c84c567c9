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
 * A process's sums cover threads that are looked at. A thread that begins and ends between two
 * ticks is in no sum, and neither is time for which samples are missing.
 */
#ifndef LIB_CAPTURE_BALANCE_H
#define LIB_CAPTURE_BALANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/capture/proc/activity.h"

struct thread;

/* {0}: nothing is known of the thread. */
struct thread_balance {
	/* The mark that was compared last. slices 0: none since the last sample that is missing. */
	struct activity_mark mark;
	uint64_t told_running_ns, told_ready_ns; /* since that mark */
	int64_t run_ns;				 /* what the kernel counts, less what was told */
	bool has_run;				 /* between the last two marks that were compared */
};

/* Sums of a process's threads. All are halved from time to time. */
struct process_balance {
	int64_t run_ns, ready_ns; /* what the kernel counts, less what was told */
	uint64_t counted_run_ns;  /* what the kernel counts */
	uint64_t ticks_ns;	  /* length of the ticks at which threads were looked at */
};

/* Compares the mark of the tick under way (thread.look), if that was read. */
void balance_compare(struct thread *th);

/* Notes that these ticks of the thread were told as running, or as ready. */
void balance_tell_running(struct thread *th, uint64_t ticks);
void balance_tell_ready(struct thread *th, uint64_t ticks);

/* A sample of the thread is missing. */
void balance_forget(struct thread *th);

/*
 * Returns what a sample tells for which activity_at_tick() returned ACTIVITY_MAY_HAVE_RUN. in_call:
 * its stop is in a system call. It counts as running, unless the process or the thread has a
 * surplus of 8 ticks: more was told than the kernel counts. Then it counts as ready; if ready time
 * has such a surplus, too, and the stop is in a call, as waiting.
 */
enum activity_at_tick balance_decide(const struct thread *th, bool in_call);

/*
 * Returns true if a thread that was found blocked counts as running at the tick: its process lacks
 * more running time than chance explains (three standard deviations), and the thread, which has run
 * since the last look, lacks some. Nothing shows where it ran: it counts as running where it was
 * last seen to run (RECORD_RUNNING), so the missing time has the functions of the time that was
 * seen.
 */
bool balance_lacks(const struct thread *th);

#endif
