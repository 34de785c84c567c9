/*
 * The thread pointer of a thread that is not stopped, found by its list of robust locks.
 *
 * A stop shows the thread's pointer, too (ptrace/arch.h). Both functions
 * take two system calls at most, and do nothing while the process's memory is slow.
 */
#ifndef LIB_CAPTURE_THREAD_POINTER_H
#define LIB_CAPTURE_THREAD_POINTER_H

#include "lib/capture/state.h"

/* A stop has shown the pointer; 0: it has not. */
void thread_pointer_set(struct thread *th, uint64_t pointer);

/* Sets th->pointer if the reader wants pointers and no stop has shown this thread's pointer. */
void thread_pointer_find(struct thread *th);

/* Sets th->stack.hints.own_end, the end of the thread's own stack, from the pointer. */
void thread_pointer_find_stack_end(struct thread *th);

#endif
