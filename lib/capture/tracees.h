/*
 * The table of the threads of all targets, and the stops that capture expects of them. A thread
 * enters the table when capture has attached to it (tracees_adopt). It leaves the table when it is
 * dead, when its process executes another program, or when capture leaves the thread or process.
 * th->due says whether capture expects a stop of the thread. A sample is under way while th->due is
 * DUE_SAMPLE.
 */
#ifndef LIB_CAPTURE_TRACEES_H
#define LIB_CAPTURE_TRACEES_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/capture/state.h"

/* Returns the thread with this tid, or NULL if it is not in the table. */
struct thread *tracees_find(struct capture *c, uint32_t tid);

/*
 * tracees_base_options() returns the PTRACE_O_* options that all tracees have. tracees_options()
 * returns those of thread tid of a target: if it is the leader and t->exit_stop is set,
 * PTRACE_O_TRACEEXIT in addition.
 */
unsigned long tracees_base_options(const struct capture *c);
unsigned long tracees_options(const struct traced_process *t, uint32_t tid);

/* Returns true if the process has a thread with this tid, in the table or not. Opens no file. */
bool tracees_exists(const struct traced_process *t, uint32_t tid);

/*
 * Adds a thread that is not in the table. Capture must trace the thread already, unless
 * capture_options.perf is set. Opens files of /proc, so do not call it while a thread is stopped.
 * Returns 0; -ESRCH if the process has no such thread; -ENOMEM; -EMFILE if no descriptor is free or
 * the table has CAPTURE_THREADS_MAX threads; or the negative errno of another PROC_LACK
 * (proc/proc.h). With capture_options.perf, -ESRCH is not returned: a thread that has ended is
 * added, too, because the kernel may have taken a sample of it before.
 */
must_check int tracees_adopt(struct traced_process *t, uint32_t tid);

/*
 * Removes a thread that is dead, or that capture cannot seize again, from the table and frees it.
 * Its RECORD_EXIT is written at the next tick, unless unwind does not know the thread or has the
 * RECORD_EXIT already (THREAD_DEAD). If a sample of the thread is under way, it is counted as
 * missed, with this reason.
 */
void tracees_remove(struct thread *th, enum missed_reason reason);

/*
 * Removes all threads of a process from the table and frees them. Counts samples under way as
 * MISSED_EXITED. Writes no record.
 */
void tracees_forget_all(struct traced_process *t);

/*
 * Call this for a sample of this tick, after interrupting the thread, or without an interrupt if
 * the thread must not have one (resume_is_undisturbed()). time_ns: begin of the tick's period.
 * Sets due to DUE_SAMPLE, and reserves as many ring bytes as the thread's last sample had. The
 * caller sets the other fields of th->pending. No sample may be under way.
 */
void tracees_set_pending(struct thread *th, uint64_t tick, uint64_t time_ns);

/*
 * Ends the sample under way without counting it; does nothing if there is none. th->due becomes
 * DUE_STOP: the stop of the interrupt still comes, and gives no sample. If the sample needed no
 * interrupt (resume_is_undisturbed()), th->due becomes DUE_NOTHING.
 */
void tracees_clear_pending(struct thread *th);

/*
 * Call this after interrupting a thread for another reason than a sample: sets th->due to DUE_STOP.
 * If capture expects a stop already, changes nothing, because one stop consumes both interrupts.
 */
void tracees_expect_stop(struct thread *th);

/*
 * Call this at each stop of a thread, and when the thread is dead. Ends the sample under way as
 * tracees_clear_pending() does, and sets th->due to DUE_NOTHING, because a stop consumes the
 * interrupt under way. another: capture has interrupted the thread again at this stop. Then th->due
 * becomes DUE_STOP.
 */
void tracees_stop_came(struct thread *th, bool another);

/* Sets th->life. Asserts that life is not an earlier state than the present one. */
void tracees_set_life(struct thread *th, enum thread_life life);

/* Asserts that the fields of the thread do not contradict each other. For use after each stop. */
void tracees_assert(const struct thread *th);

/* As tracees_clear_pending() for all threads of a process, but counts the samples as missed. */
void tracees_give_up_samples(struct traced_process *t, enum missed_reason reason);

/*
 * Call this when capture has seized a thread again. Stops and the resumed system call of the old
 * attachment are not expected any more. A sample under way is counted as missed.
 */
void tracees_begin_again(struct thread *th);

#endif
