/*
 * Copies what one thread of another process does, registers and stack, as a
 * record of lib/capture/sample.h, by the means of lib/capture. Used by
 * sentry-profd-oracle and by the tests that compare stop by stop.
 *
 * A thread that was stopped goes on by thread_release, as if nothing had been:
 * a call that the stop interrupted is started again. If this process ends
 * before, the kernel lets it go.
 */
#ifndef DAEMON_ORACLE_THREAD_COPY_H
#define DAEMON_ORACLE_THREAD_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/oracle/live.h"
#include "lib/base/util.h"
#include "lib/capture/sample.h"
#include "lib/capture/snapshot.h"
#include "lib/capture/ptrace/tracee.h"

struct thread_stop {
	int32_t tid;
	enum tracee_status status;
	int signal; /* to be delivered when the thread goes on; 0: none */
};

/* A thread that can stop does so as soon as it gets a processor. */
#define THREAD_STOP_NS (5 * NS_PER_SEC)

/*
 * Attaches to a thread, which runs on. Returns 0; -ESRCH if it is gone, -EPERM
 * if it may not be traced or is traced already, -EOPNOTSUPP if it is the
 * kernel's (status_is_worker).
 */
must_check int thread_attach(int32_t tid);

/*
 * Stops a thread that this process has attached to, which takes no rights.
 * Returns 0; -ESRCH if it is gone, -ETIMEDOUT if it has not stopped within
 * wait_ns (it waits in the kernel, for a disk as a rule): it will stop later,
 * and *ret is for thread_release_late.
 */
must_check int thread_stop_attached(int32_t tid, uint64_t wait_ns, struct thread_stop *ret);

/* Both. */
must_check int thread_stop(int32_t tid, uint64_t wait_ns, struct thread_stop *ret);

/*
 * Releases one that thread_stop has not waited for, if it has stopped
 * meanwhile. False: it has not, and is to be asked again, soon; whom the end of
 * this process finds so goes on by himself.
 */
bool thread_release_late(struct thread_stop *stop);

/* Mends what the stop has done, and detaches. */
void thread_release(const struct thread_stop *stop);

/*
 * The bytes of a copy: as many as a record of capture has, at most. A stack
 * that is larger is flagged SAMPLE_CAPPED.
 */
#define THREAD_COPY_MAX SNAPSHOT_SIZE_MAX

/*
 * Copies a thread with these registers, by DWARF number, of which regs_known
 * tells which count: thread_copy_stopped says the rest. Returns the bytes used.
 */
size_t thread_copy(const struct live *l, int32_t tid, const uint64_t *regs, uint64_t regs_known,
		   uint64_t second, struct record_sample *record);

/*
 * Copies a stopped thread into record, which has room for THREAD_COPY_MAX
 * bytes and is aligned for it. l has the maps, which tell how large the stack
 * is. second: where a second range begins (struct unwind_stack), 0: there is
 * none. Returns 0 with the bytes used, or -ESRCH, -ENOEXEC (a 32-bit one).
 */
must_check int thread_copy_stopped(const struct live *l, const struct thread_stop *stop,
				   uint64_t second, struct record_sample *record, size_t *ret_size);

/*
 * Copies a stopped thread into record and unwinds the copy: with a second
 * range, if its stack leads to another one. Returns 0, or the error of
 * thread_copy_stopped or unwind_walk.
 */
must_check int thread_walk(const struct live *l, const struct thread_stop *stop,
			   struct record_sample *record, struct unwind_stack *ret);

#endif
