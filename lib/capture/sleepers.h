/*
 * The lists of a process's awake and sleeping threads.
 *
 * A thread is asleep if it was found blocked and has not run since. Sleeping threads are not
 * looked at, and most ticks do not even ask whether they have run: sleepers_begin_tick compares
 * the process's CPU clock with the run times of its threads (see sleepers.c).
 */
#ifndef LIB_CAPTURE_SLEEPERS_H
#define LIB_CAPTURE_SLEEPERS_H

#include <stdint.h>

#include "lib/capture/proc/activity.h"
#include "lib/capture/state.h"

/* Adds a new thread, awake, to the lists of its process. */
void sleepers_link(struct thread *th);
void sleepers_unlink(struct thread *th);

/* The thread was found blocked, and has not run since mark was read. */
void sleepers_add(struct thread *th, const struct activity_mark *mark);

/* The thread may have run. Does nothing for a thread that is awake. */
void sleepers_wake(struct thread *th);

/* Reads the run and wait times of a thread into look, look_known and own_processor. */
void sleepers_read_times(struct thread *th);

/*
 * Begins a tick: reads the times of all awake threads, and decides whether the sleeping threads
 * have to be asked. If so, next_asleep is the first of them.
 */
void sleepers_begin_tick(struct traced_process *t);

/*
 * Asks up to *asks sleeping threads, counts *asks down, and wakes and returns the first one that
 * has run. *ret_woke_ns: for how long this thread has run and waited for a processor since it
 * fell asleep. NULL: none of the threads asked has run; if next_asleep is NULL, too, all have
 * been asked.
 */
struct thread *sleepers_next_that_ran(struct traced_process *t, unsigned int *asks,
				      uint64_t *ret_woke_ns);

/* All sleeping threads that had to be asked have been: keeps what the CPU clock said. */
void sleepers_end_asking(struct traced_process *t);

#endif
