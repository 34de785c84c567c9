/*
 * Stops one thread of another process by ptrace(2), and copies the registers and the stack of the
 * thread to a record of lib/capture/sample.h. Used by sentry-profd-oracle and by the tests that
 * compare unwinders at single stops. All calls come from the same thread, which is the tracer.
 *
 * thread_release() resumes the thread so that it does not notice the stop: a system call that
 * the stop interrupted is restarted. If this process exits without thread_release(), the kernel
 * detaches and resumes the thread, but does not restart the call.
 */
#ifndef DAEMON_ORACLE_THREAD_COPY_H
#define DAEMON_ORACLE_THREAD_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/oracle/live.h"
#include "lib/base/util.h"
#include "lib/capture/ptrace/tracee.h"
#include "lib/capture/sample.h"
#include "lib/capture/snapshot.h"

/* A thread in a ptrace-stop. */
struct thread_stop {
	int32_t tid;
	enum tracee_status status; /* the kind of the stop */
	int signal;		   /* to deliver when the thread is resumed; 0: none */
};

/* The usual time limit for a stop. Most threads stop as soon as they get a processor. */
#define THREAD_STOP_NS (5 * NS_PER_SEC)

/*
 * Attaches to a thread (PTRACE_SEIZE), which keeps running. Returns 0; -ESRCH if the thread does
 * not exist; -EPERM if tracing is not permitted or the thread has another tracer; -EOPNOTSUPP for a
 * worker thread that the kernel runs in the process (status_is_worker()), or if it is unknown
 * whether the thread is one.
 */
must_check int thread_attach(int32_t tid);

/*
 * Stops a thread to which thread_attach() has attached. Returns 0; -ESRCH if the thread does not
 * exist; or -ETIMEDOUT if the thread has not stopped within wait_ns, because it waits in the
 * kernel, usually for a disk. After -ETIMEDOUT, too, *ret is set: the thread stops later, and the
 * caller passes *ret to thread_release_late().
 */
must_check int thread_stop_attached(int32_t tid, uint64_t wait_ns, struct thread_stop *ret);

/* Calls thread_attach(), then thread_stop_attached(). Returns 0, or the error of either. */
must_check int thread_stop(int32_t tid, uint64_t wait_ns, struct thread_stop *ret);

/*
 * Releases a thread for which thread_stop() or thread_stop_attached() returned -ETIMEDOUT. Returns
 * true if the thread has stopped and is now released, or has exited. Returns false if the thread
 * has not stopped yet: the caller calls again soon. If the thread never stops, the caller may give
 * up: the kernel detaches the thread when this process exits.
 */
bool thread_release_late(struct thread_stop *stop);

/*
 * Restarts the system call that the stop has interrupted, if there is one, and detaches. A signal
 * that caused the stop is delivered. Ignores errors: the thread may have exited.
 */
void thread_release(const struct thread_stop *stop);

/*
 * The largest copy in bytes, as large as the largest sample of capture. A larger stack is cut off
 * and marked SAMPLE_CAPPED.
 */
#define THREAD_COPY_MAX SNAPSHOT_SIZE_MAX

/*
 * Copies the stack of a thread, whose registers the caller passes, to record. regs has ARCH_REGS
 * values, indexed by the DWARF numbers of the registers. Bit n of regs_known is set if regs[n] is
 * valid; the stack pointer and the pc must be. record has room for THREAD_COPY_MAX bytes, aligned
 * as the struct.
 *
 * The copy ends where the mapping that contains the stack pointer ends, by the maps in l: the
 * caller calls live_read_maps() before. second is the start address of a second stack to copy
 * (unwind_stack.second); 0: none. Returns the size of the record in bytes.
 */
size_t thread_copy(const struct live *l, int32_t tid, const uint64_t *regs, uint64_t regs_known,
		   uint64_t second, struct record_sample *record);

/*
 * Reads the registers of a stopped thread and calls thread_copy() with them. Returns 0 and the size
 * of the record in bytes; -ESRCH if the thread has exited; or -ENOEXEC for a 32-bit thread.
 */
must_check int thread_copy_stopped(const struct live *l, const struct thread_stop *stop,
				   uint64_t second, struct record_sample *record, size_t *ret_size);

/*
 * Copies a stopped thread to record, of THREAD_COPY_MAX bytes, and unwinds the copy. If the walk
 * needs a second stack (such as the thread's own, below a coroutine's), copies both stacks and
 * unwinds again. Returns 0, or the error of thread_copy_stopped() or unwind_walk().
 */
must_check int thread_walk(const struct live *l, const struct thread_stop *stop,
			   struct record_sample *record, struct unwind_stack *ret);

#endif
