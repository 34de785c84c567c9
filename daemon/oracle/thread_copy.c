#include "daemon/oracle/thread_copy.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/capture/proc/memory.h"
#include "lib/capture/proc/status.h"
#include "lib/capture/ptrace/arch.h"
#include "lib/capture/restart/repair.h"
#include "lib/capture/snapshot.h"

/* Pause between two calls of tracee_wait(); with timer slack about 70 us. */
#define STOP_POLL_NS (10 * NS_PER_US)

/* Returns 0 if the thread has stopped, -EAGAIN if not yet, -ESRCH if it has exited. */
static int take_status(struct thread_stop *stop)
{
	int status;
	pid_t r = tracee_wait(stop->tid, false, &status);

	if (r < 0)
		return errno == EINTR ? -EAGAIN : -ESRCH;
	if (r != stop->tid)
		return -EAGAIN;
	stop->status = tracee_classify(status, &stop->signal);
	return stop->status == TRACEE_DEAD ? -ESRCH : 0;
}

/* Waits until the thread stops or exits. */
static int wait_stop(struct thread_stop *stop, uint64_t wait_ns)
{
	const struct timespec pause = {.tv_nsec = STOP_POLL_NS};
	const uint64_t deadline_ns = clock_mono_ns() + wait_ns;
	int r;

	while ((r = take_status(stop)) == -EAGAIN) {
		if (clock_mono_ns() >= deadline_ns)
			return -ETIMEDOUT;
		(void)nanosleep(&pause, NULL);
	}
	return r;
}

int thread_attach(int32_t tid)
{
	if (status_is_worker((uint32_t)tid) != PROC_NO)
		return -EOPNOTSUPP;
	return ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0 ? -errno : 0;
}

int thread_stop_attached(int32_t tid, uint64_t wait_ns, struct thread_stop *ret)
{
	*ret = (struct thread_stop){.tid = tid};
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0)
		return -errno;
	return wait_stop(ret, wait_ns);
}

int thread_stop(int32_t tid, uint64_t wait_ns, struct thread_stop *ret)
{
	int r = thread_attach(tid);

	return r < 0 ? r : thread_stop_attached(tid, wait_ns, ret);
}

bool thread_release_late(struct thread_stop *stop)
{
	int r = take_status(stop);

	if (r == 0)
		thread_release(stop);
	return r != -EAGAIN;
}

void thread_release(const struct thread_stop *stop)
{
	const uint32_t tid = (uint32_t)stop->tid;
	struct arch_regs regs;

	/* Restarts a system call that the stop, or an ignored signal, has interrupted. */
	if (arch_get_regs(tid, &regs) == 0) {
		if (stop->status == TRACEE_TRAP)
			(void)repair_call(tid, &regs, 0);
		else if (stop->status == TRACEE_SIGNAL && status_goes_unnoticed(tid, stop->signal))
			(void)repair_call(tid, &regs, stop->signal);
	}
	(void)ptrace(PTRACE_DETACH, stop->tid, NULL, tracee_delivery(stop->status, stop->signal));
}

/*
 * Copies up to the end of the mapping that the stack pointer is in. Pages that were never touched
 * are copied as zeros.
 */
size_t thread_copy(const struct live *l, int32_t tid, const uint64_t *regs, uint64_t regs_known,
		   uint64_t second, struct record_sample *record)
{
	const uint64_t sp = regs[ARCH_SP];
	const uint64_t top = live_mapping_end(l, sp);
	const uint64_t second_end = live_mapping_end(l, second);
	struct stack_plan plan = {
		.known.top = top,
		.size = SAMPLE_WHOLE_MAX,
		.second = second,
	};
	uint32_t flags = 0;
	int pagemap_fd;
	size_t size;

	if (top > sp && top - sp > SAMPLE_WHOLE_MAX - ARCH_RED_ZONE)
		flags |= SAMPLE_CAPPED;
	else if (top > sp)
		plan.size = (size_t)(top - sp) + ARCH_RED_ZONE;
	if (second_end > 0) {
		plan.second_size = (size_t)min_u64(second_end - second, SAMPLE_WHOLE_MAX);
		plan.second_is_capped = second_end - second > SAMPLE_WHOLE_MAX;
	}
	if (memory_open(l->proc_fd, (uint32_t)tid, &pagemap_fd) < 0)
		pagemap_fd = -1;
	record->h = (struct record){
		.ring.type = RECORD_SAMPLE,
		.tid = (uint32_t)tid,
	};
	size = snapshot_take(record, pagemap_fd, NULL, tid, regs, regs_known, flags, &plan);
	record->h.ring.size = (uint32_t)size;
	close_fd(&pagemap_fd);
	return size;
}

int thread_copy_stopped(const struct live *l, const struct thread_stop *stop, uint64_t second,
			struct record_sample *record, size_t *ret_size)
{
	struct arch_regs raw;
	uint64_t regs[ARCH_REGS];
	int r = arch_get_regs((uint32_t)stop->tid, &raw);

	if (r < 0)
		return r;
	arch_to_dwarf(&raw, regs);
	*ret_size = thread_copy(l, stop->tid, regs, ARCH_REGS_ALL, second, record);
	return 0;
}

int thread_walk(const struct live *l, const struct thread_stop *stop, struct record_sample *record,
		struct unwind_stack *ret)
{
	uint64_t second = 0;
	size_t size;
	int r = 0;

	for (int i = 0; r == 0 && (i == 0 || second != 0) && i < 2; i++) {
		r = thread_copy_stopped(l, stop, second, record, &size);
		if (r == 0)
			r = unwind_walk(l->space, record, size, UNWIND_FRAMES_MAX, ret);
		second = ret->second;
	}
	return r;
}
