/*
 * Stops one thread of another process and copies its registers and stack, by lib/capture, as
 * a record of lib/capture/sample.h. Used by sentry-profd-oracle and by the tests that compare
 * unwinders at single stops.
 *
 * thread_release() resumes the thread so that it does not notice the stop: a system call that
 * the stop interrupted is restarted. If this process exits earlier, the kernel detaches and
 * resumes the thread, but does not restart the call.
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

struct thread_stop {
	int32_t tid;
	enum tracee_status status;
	int signal; /* to deliver when the thread is resumed; 0: none */
};

/* Time limit for a stop: a thread stops as soon as it gets a processor. */
#define THREAD_STOP_NS (5 * NS_PER_SEC)

/*
 * Attaches to a thread (PTRACE_SEIZE), which keeps running. Returns 0; -ESRCH if it does not
 * exist; -EPERM if tracing is not permitted or another tracer has it; -EOPNOTSUPP for a
 * worker thread of the kernel (status_is_worker).
 */
must_check int thread_attach(int32_t tid);

/*
 * Stops a thread that is attached. Returns 0; -ESRCH if it does not exist; or -ETIMEDOUT if
 * it has not stopped within wait_ns, because it waits in the kernel, usually for a disk. After
 * -ETIMEDOUT it stops later: pass *ret to thread_release_late().
 */
must_check int thread_stop_attached(int32_t tid, uint64_t wait_ns, struct thread_stop *ret);

/* thread_attach() and thread_stop_attached(). */
must_check int thread_stop(int32_t tid, uint64_t wait_ns, struct thread_stop *ret);

/*
 * Releases a thread of which thread_stop() returned -ETIMEDOUT. Returns true if it had
 * stopped and is released, or has exited. Returns false if it has not stopped yet: call again
 * soon. A thread that never stopped is detached when this process exits.
 */
bool thread_release_late(struct thread_stop *stop);

/* Restarts an interrupted system call if needed, and detaches. */
void thread_release(const struct thread_stop *stop);

/*
 * The largest copy in bytes, that of a record of capture. A larger stack is cut off and marked
 * SAMPLE_CAPPED.
 */
#define THREAD_COPY_MAX SNAPSHOT_SIZE_MAX

/*
 * Copies the stack of a thread that has these registers, numbered as in DWARF; regs_known is
 * a mask of the valid ones. The other parameters are those of thread_copy_stopped(). Returns
 * the size of the record in bytes.
 */
size_t thread_copy(const struct live *l, int32_t tid, const uint64_t *regs, uint64_t regs_known,
		   uint64_t second, struct record_sample *record);

/*
 * Copies the registers and the stack of a stopped thread to record, which has room for
 * THREAD_COPY_MAX bytes and the alignment of the struct. The maps in l tell where the stack
 * ends. second is the start address of a second stack to copy (struct unwind_stack), 0: none.
 * Returns 0 with the size in bytes, -ESRCH, or -ENOEXEC for a 32-bit thread.
 */
must_check int thread_copy_stopped(const struct live *l, const struct thread_stop *stop,
				   uint64_t second, struct record_sample *record, size_t *ret_size);

/*
 * Copies a stopped thread to record and unwinds the copy. If the stack continues on a second
 * one, copies both and unwinds again. Returns 0, or the error of thread_copy_stopped() or
 * unwind_walk().
 */
must_check int thread_walk(const struct live *l, const struct thread_stop *stop,
			   struct record_sample *record, struct unwind_stack *ret);

#endif
