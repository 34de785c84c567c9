/*
 * The table of all threads, and how a thread comes and goes.
 *
 * A thread enters the table when capture has attached to it (tracees_adopt) and leaves it when it
 * is dead, or when its process executes another program. In between it may have an interrupt
 * under way (struct thread, due).
 */
#ifndef LIB_CAPTURE_TRACEES_H
#define LIB_CAPTURE_TRACEES_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/capture/state.h"

/* The thread of this number, or NULL. */
struct thread *tracees_find(struct capture *c, uint32_t tid);

/* The options of ptrace(2) that every tracee has, and those of a thread of a process. */
unsigned long tracees_base_options(const struct capture *c);
unsigned long tracees_options(const struct traced_process *t, uint32_t tid);

/* True if the process has a thread of this number. Opens no file. */
bool tracees_exists(const struct traced_process *t, uint32_t tid);

/*
 * Adds a thread that capture traces already, by PTRACE_SEIZE or because the kernel attached it.
 * Returns 0, -ESRCH if the process has no thread of this number, or the error of a lack of
 * descriptors or memory (proc/proc.h). Opens files: not while a thread is stopped.
 */
must_check int tracees_adopt(struct traced_process *t, uint32_t tid);

/* The thread is dead: frees it. RECORD_EXIT follows at the next tick. */
void tracees_remove(struct thread *th, enum missed_reason reason);

/* Frees all threads of a process, without a record. */
void tracees_forget_all(struct traced_process *t);

/* The thread was interrupted for a sample of this tick. */
void tracees_set_pending(struct thread *th, uint64_t tick, uint64_t time_ns);

/* The stop that may still come gives no sample. Does nothing if no sample is under way. */
void tracees_clear_pending(struct thread *th);

/* The same, and the sample counts as missed. */
void tracees_give_up_sample(struct thread *th, enum missed_reason reason);
void tracees_give_up_samples(struct traced_process *t, enum missed_reason reason);

/* Capture let go of the thread and has attached again: clears what the old attachment left. */
void tracees_begin_again(struct thread *th);

#endif
