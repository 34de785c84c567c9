/*
 * Finds pthread_self(3) of a thread that is not stopped: the address of its struct pthread.
 * get_robust_list(2) tells where the head of the thread's list of robust locks is. glibc has the
 * head in struct pthread, so the module searches the 2 KiB before the head. On x86_64 a stop shows
 * it, too, and with any C library: it is the thread pointer (fs_base). On aarch64 the thread
 * pointer (tpidr_el0) is the end of struct pthread, whose size differs between versions of glibc: a
 * stop shows pthread_self() once the module has found that of another thread of the process.
 *
 * record.c searches for the pointer, which unwind can show as the thread's id, and capture.c for
 * the end of the thread's own stack. The two functions that search do nothing if their field of th
 * is known, or while the memory is slow to read (slow_memory.h). If they find nothing, the field
 * stays 0, which means unknown.
 */
#ifndef LIB_CAPTURE_THREAD_POINTER_H
#define LIB_CAPTURE_THREAD_POINTER_H

#include "lib/capture/state.h"

/*
 * Sets th->pointer, if it can be told from the thread pointer that a stop has shown
 * (arch_thread_pointer). 0 changes nothing.
 */
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
