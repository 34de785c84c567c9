/*
 * Reads the states of a process's threads from /proc, and the children that they have forked. The
 * broker does so before it decides that a child process hangs; the code that opens files looks for
 * a thread that has not exited.
 *
 * Each function looks at the threads one after the other: a thread can change its state
 * before the function returns.
 */
#ifndef DAEMON_PROCESS_THREADS_H
#define DAEMON_PROCESS_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns true if a thread of pid runs or is runnable. */
bool threads_any_runnable(int32_t pid);

/* Returns true if a signal or a tracer has stopped a thread of pid. */
bool threads_any_stopped(int32_t pid);

/*
 * Returns true if a thread of pid sleeps in a call that reads another process's memory:
 * process_vm_readv(2), or pread(2), as of /proc/PID/mem.
 */
bool threads_any_reading_memory(int32_t pid);

/*
 * Returns a process other than `but` that traces a thread of pid; 0: there is none, or pid has
 * ended.
 */
int32_t threads_find_tracer(int32_t pid, int32_t but);

/*
 * Reads which of the signals 1 to 31 a thread of pid has blocked; bit n - 1 stands for signal n.
 * Returns false if the thread has exited.
 */
bool threads_blocked_signals(int32_t pid, int32_t tid, uint32_t *ret);

/*
 * Finds a thread of pid that has not exited, and returns its tid: pid itself if the leader lives,
 * or if no thread does. Used because /proc/PID shows neither memory nor files once the leader has
 * exited, while /proc/TID of the returned thread still does.
 */
int32_t threads_find_living(int32_t pid);

/* Which processes trace threads of a process. */
struct threads_tracers {
	int32_t traced_by_ours; /* a thread that the process ours traces; 0: none */
	int32_t other;		/* a process other than ours that traces a thread; 0: none */
};

/*
 * Finds the tracers of the threads of pid (TracerPid in the status of each). Stops at the first
 * thread that ours traces. Returns how many threads it has looked at; 0: pid has ended. A look
 * takes some 20 us.
 */
size_t threads_find_tracers(int32_t pid, int32_t ours, struct threads_tracers *ret);

/*
 * Calls found() with each child of pid, at the time of the call, that has not been waited for. A
 * kernel without CONFIG_PROC_CHILDREN shows none.
 */
void threads_each_child(int32_t pid, void (*found)(void *ctx, int32_t child), void *ctx);

#endif
