/*
 * Reads the states of the threads of a process from /proc, and the children of the process. The
 * broker uses this module before it decides that one of its child processes hangs. Code that reads
 * files of a process in /proc uses it to find a thread that has not exited.
 *
 * Each function reads the threads one after the other. A thread that has been read can change its
 * state before the function returns. A process that does not exist has no threads.
 */
#ifndef DAEMON_PROCESS_THREADS_H
#define DAEMON_PROCESS_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns true if a thread of pid is running or runnable. */
bool threads_any_runnable(int32_t pid);

/* Returns true if a signal or a tracer has stopped a thread of pid. */
bool threads_any_stopped(int32_t pid);

/*
 * Returns true if a thread of pid sleeps in a system call that may read the memory of another
 * process: process_vm_readv(2), or pread(2), by which capture reads /proc/PID/mem.
 */
bool threads_any_reading_memory(int32_t pid);

/*
 * Returns the pid of a process other than `but` that traces a thread of pid; 0: there is none, or
 * pid has ended.
 */
int32_t threads_find_tracer(int32_t pid, int32_t but);

/*
 * Reads which of the signals 1 to 31 a thread of pid has blocked; bit n - 1 stands for signal n.
 * Returns false if the thread has exited or cannot be read; *ret is then of no use.
 */
bool threads_blocked_signals(int32_t pid, int32_t tid, uint32_t *ret);

/*
 * Returns the tid of a thread of pid that has not exited: pid itself if the leader (the first
 * thread) has not exited, or if no thread is left. After the exit of the leader /proc/PID shows
 * neither memory nor files, but /proc/TID of another thread does.
 */
int32_t threads_find_living(int32_t pid);

/* The tracers of the threads of a process; ours is the pid given to threads_find_tracers(). */
struct threads_tracers {
	int32_t traced_by_ours; /* the tid of a thread that process ours traces; 0: none */
	int32_t other;		/* the pid of another process that traces a thread; 0: none found */
};

/*
 * Finds the tracers of the threads of pid. Stops at the first thread that process ours traces; a
 * tracer of the threads after it is not found. Returns the number of threads that it has read, by
 * which the caller limits its work (some 20 us each); 0: pid does not exist.
 */
size_t threads_find_tracers(int32_t pid, int32_t ours, struct threads_tracers *ret);

/*
 * Calls found(ctx, ...) with each child process of pid for which pid has not waited yet. A kernel
 * without CONFIG_PROC_CHILDREN shows no children.
 */
void threads_each_child(int32_t pid, void (*found)(void *ctx, int32_t child), void *ctx);

#endif
