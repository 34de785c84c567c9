/*
 * The lists of a process's awake and sleeping threads. A thread is asleep if a look found it
 * blocked and it has not run since. At a tick, capture looks at each awake thread. Of a sleeping
 * thread it only checks by a mark whether the thread has run. If more threads sleep than are awake,
 * even these checks are mostly left out: sleepers_begin_tick() compares the process's CPU clock
 * with the run times of its threads, which nearly always shows that no sleeping thread has run.
 *
 * In each tick of a process tick.c calls (next_asleep is a member of traced_process.threads):
 * 1. sleepers_begin_tick();
 * 2. sleepers_next_that_ran(), again and again until next_asleep is NULL. The caller looks at each
 *    thread that it returns. *checks is the number of checks that the caller allows until it
 *    handles stops. Stops may change the lists.
 * 3. sleepers_end_checks(), also if next_asleep was NULL from the start.
 */
#ifndef LIB_CAPTURE_SLEEPERS_H
#define LIB_CAPTURE_SLEEPERS_H

#include <stdint.h>

#include "lib/capture/proc/activity.h"
#include "lib/capture/state.h"

/* Adds a new thread, awake, to the lists of its process. */
void sleepers_link(struct thread *th);
/* Removes a thread from the lists of its process. Call this before th is freed. */
void sleepers_unlink(struct thread *th);

/* Moves a thread to the sleeping ones: it is blocked at *place, and has not run since *mark. */
void sleepers_add(struct thread *th, const struct activity_mark *mark,
		  const struct activity_place *place);

/* Moves a thread to the awake ones, since it may have run. Does nothing for an awake thread. */
void sleepers_wake(struct thread *th);

/*
 * Moves the awake threads that precede this awake one to the end of their list, in the same order:
 * the tick then looks at this thread first.
 */
void sleepers_begin_with(struct thread *th);

/*
 * Call this when t->threads.n was found to agree with the number of threads in /proc. Sets
 * t->threads.stirred to false. It becomes true when a thread runs, begins or ends; until then the
 * numbers need not be compared again.
 */
void sleepers_note_counted(struct traced_process *t);

/* Calls sleepers_wake() for all threads: the next tick looks at each. */
void sleepers_wake_all(struct traced_process *t);

/*
 * Reads a mark (proc/activity.h) of a thread for the tick under way into th->look. Sets
 * th->look.known to false if schedstat cannot be read.
 */
void sleepers_read_times(struct thread *th);

/*
 * Begins a tick: reads the times of the awake threads. Sets next_asleep to the first sleeping
 * thread if the sleeping threads have to be checked, else to NULL. An interrupted thread keeps its
 * last reading; a thread that has a processor to itself may keep it for up to three ticks. Once 16
 * threads sleep, sets a timer on the process's CPU clock, which makes the clock cheap to read.
 */
void sleepers_begin_tick(struct traced_process *t);

/*
 * Checks up to *checks sleeping threads, and subtracts the number of checks from *checks. Moves the
 * first thread that has run to the awake ones and returns it; *ret_awake_ns is the time (ns) for
 * which it has run and waited for a processor since it fell asleep. A thread whose schedstat cannot
 * be read counts as one that has run; *ret_awake_ns is 0 then. Returns NULL if no thread that it
 * has checked has run; then *checks is 0, or next_asleep is NULL. Sets next_asleep to NULL when all
 * sleeping threads have been checked, or when the threads that have run explain the process's CPU
 * clock.
 */
struct thread *sleepers_next_that_ran(struct traced_process *t, unsigned int *checks,
				      uint64_t *ret_awake_ns);

/*
 * Call this in each tick when next_asleep is NULL: no sleeping thread has to be checked any more.
 * Keeps the reading of the CPU clock, with which the next sleepers_begin_tick() compares its own.
 */
void sleepers_end_checks(struct traced_process *t);

/*
 * Deletes the timer that sleepers_begin_tick set on the process's CPU clock. Call this before t is
 * freed.
 */
void sleepers_delete_timer(struct traced_process *t);

#endif
