/*
 * Finds the thread pointer (fs_base, tpidr_el0: the base of thread-local storage) of a thread that
 * is not stopped. get_robust_list(2) tells where the head of the thread's list of robust locks is.
 * glibc has the head in the thread's struct pthread, which begins at the thread pointer on x86_64:
 * so the module searches the 2 KiB before the head. On aarch64 thread_pointer_find() finds nothing;
 * there only a stop shows the pointer.
 *
 * record.c searches for the pointer, which unwind can show as the thread's id, and capture.c for
 * the end of the thread's own stack. The two functions that search do nothing if their field of th
 * is known, or while the memory is slow to read (slow_memory.h). If they find nothing, the field
 * stays 0, which means unknown.
 */
#ifndef LIB_CAPTURE_THREAD_POINTER_H
#define LIB_CAPTURE_THREAD_POINTER_H

#include "lib/capture/state.h"

/* Sets th->pointer to what a stop has shown (arch_thread_pointer); 0 changes nothing. */
void thread_pointer_set(struct thread *th, uint64_t pointer);

/* Searches for th->pointer if the target's reader wants pointers (capture_want_thread_pointers). */
void thread_pointer_find(struct thread *th);

/*
 * Searches for th->stack.hints.own_end, the end of the thread's own stack. Of a thread other than
 * the leader it is the address of its struct pthread, which glibc puts above the stack. (Of the
 * leader, record_announce() reads it from /proc.)
 */
void thread_pointer_find_stack_end(struct thread *th);

#endif
