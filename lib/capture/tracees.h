/*
 * The table of all threads. A thread enters the table when capture has attached to it
 * (tracees_adopt), and leaves it when it is dead, or when its process executes another program. In
 * between it may have an interrupt under way (struct thread, due).
 */
#ifndef LIB_CAPTURE_TRACEES_H
#define LIB_CAPTURE_TRACEES_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/capture/state.h"

/* Returns the thread of this number, or NULL. */
struct thread *tracees_find(struct capture *c, uint32_t tid);

/*
 * Return the options of ptrace(2) that all tracees have, and those of thread tid of a target: the
 * same, and PTRACE_O_TRACEEXIT if the thread is the leader and t->exit_stop is set.
 */
unsigned long tracees_base_options(const struct capture *c);
unsigned long tracees_options(const struct traced_process *t, uint32_t tid);

/* Returns true if the process has a thread of this number. Opens no file. */
bool tracees_exists(const struct traced_process *t, uint32_t tid);

/*
 * Adds a thread that capture traces already, by PTRACE_SEIZE or because the kernel attached it.
 * Returns 0, -ESRCH if the process has no thread of this number, or the negative
 * errno of PROC_LACK (proc/proc.h). Opens files: not while a thread is stopped.
 */
must_check int tracees_adopt(struct traced_process *t, uint32_t tid);

/*
 * Frees a dead thread. RECORD_EXIT follows at the next tick. reason: why a sample under way is
 * missed.
 */
void tracees_remove(struct thread *th, enum missed_reason reason);

/* Frees all threads of a process. Writes no record. */
void tracees_forget_all(struct traced_process *t);

/* Notes that the thread was interrupted for a sample of this tick, and reserves ring bytes. */
void tracees_set_pending(struct thread *th, uint64_t tick, uint64_t time_ns);

/*
 * Ends a sample under way: the stop that may still come gives no sample. Does nothing if no sample
 * is under way.
 */
void tracees_clear_pending(struct thread *th);

/*
 * The thread was interrupted, but not for a sample: a stop is to come. If a sample is under way,
 * that stop is already known.
 */
void tracees_expect_stop(struct thread *th);

/*
 * Call this at each stop, which consumes an interrupt that is under way, and when the thread is
 * dead and stops no more: ends a sample under way. another: capture has interrupted the thread once
 * more.
 */
void tracees_stop_came(struct thread *th, bool another);

/*
 * Sets th->life, which only goes forward.
 */
void tracees_set_life(struct thread *th, enum thread_life life);

/* Asserts that the states of the thread's parts agree. */
void tracees_assert(const struct thread *th);

/* Calls tracees_clear_pending() for all threads of a process, and counts their samples as missed.
 */
void tracees_give_up_samples(struct traced_process *t, enum missed_reason reason);

/* Clears the state of the old attachment. Call this when capture has seized the thread again. */
void tracees_begin_again(struct thread *th);

#endif
