/*
 * Finds the thread pointer (fs_base, tpidr_el0: the base of thread-local storage) of a thread that
 * is not stopped, by its list of robust locks (get_robust_list(2)).
 *
 * If nothing is found, the field that a function sets stays 0, which means unknown. The functions
 * that search do nothing if their field is known, or while the memory is slow (slow_memory.h).
 */
#ifndef LIB_CAPTURE_THREAD_POINTER_H
#define LIB_CAPTURE_THREAD_POINTER_H

#include "lib/capture/state.h"

/* Sets th->pointer to what a stop has shown (arch_thread_pointer); 0 changes nothing. */
void thread_pointer_set(struct thread *th, uint64_t pointer);

/* Searches for th->pointer if the target's reader wants pointers (capture_want_thread_pointers). */
void thread_pointer_find(struct thread *th);

/* Sets th->stack.hints.own_end: the thread's own stack ends where its thread-local data begin. */
void thread_pointer_find_stack_end(struct thread *th);

#endif
