/*
 * Looking at a thread without stopping it: has it run, is it blocked, where.
 *
 * Two files of proc(5) kept open: task/TID/schedstat (run time and time
 * slices, cumulative: equal to an earlier reading means that the thread has
 * not run since) and task/TID/syscall (call, sp and pc of a blocked thread).
 * schedstat of a *running* thread can stand still for ticks, so it counts only
 * against a reading that stood before a look at syscall which said "blocked".
 */
#ifndef LIB_CAPTURE_PROC_ACTIVITY_H
#define LIB_CAPTURE_PROC_ACTIVITY_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

struct activity {
	int schedstat_fd;
	int syscall_fd;
};

struct activity_mark {
	uint64_t run_ns;
	uint64_t wait_ns; /* runnable, without a processor */
	uint64_t slices;
};

enum activity_state {
	ACTIVITY_RUNNING, /* on a processor or waiting for one */
	ACTIVITY_BLOCKED, /* in a call, or in a page fault (call -1) */
	ACTIVITY_DEAD,
};

struct activity_place {
	long call;	   /* -1: not in a call */
	uint64_t argument; /* the call's first */
	uint64_t sp;
	uint64_t pc;
};

/*
 * Opens the files of a thread below the descriptor of its /proc/PID. Returns
 * 0, -ESRCH if the thread is gone, or the error of a lack (lib/capture/proc/proc.h).
 */
must_check int activity_open(struct activity *a, int proc_fd, uint32_t tid);
void activity_close(struct activity *a);

/*
 * False if it cannot be read, or if this kernel does not account (then a mark
 * is never equal to another).
 */
bool activity_mark(const struct activity *a, struct activity_mark *ret);

/* Between two marks with the same numbers the thread has not run. */
static inline bool activity_same(const struct activity_mark *a, const struct activity_mark *b)
{
	return a->run_ns == b->run_ns && a->slices == b->slices;
}

/* Moments of a thread that was interrupted at a tick, by the tracer's clock. */
struct activity_moments {
	uint64_t due_ns;	 /* the tick was due */
	uint64_t came_ns;	 /* the tracer began to work for the tick */
	uint64_t look_ns;	 /* the mark was read */
	uint64_t not_stopped_ns; /* the thread had not stopped yet */
	uint64_t stop_ns;	 /* the tracer took its stop */
};

enum activity_run {
	ACTIVITY_WAITED,
	ACTIVITY_MAY_HAVE_RUN,
	ACTIVITY_RAN,
};

/*
 * Whether a thread that could run when it was looked at was on a processor, as
 * far as the kernel's figures say. before: read at the look; now: read at the
 * stop that followed.
 *
 * - It has got no processor in between (slices): it had one, and kept
 *   it. That is certain; what follows is not.
 * - It lost its processor after the look; or when the tick was due, because the
 *   tracer needed it in order to work. When it lost it follows from how long it
 *   has waited. The wait is in the figures from when it ends
 *   (sched_info_arrive() in kernel/sched/stats.h).
 * - It has not slept since the look: it has waited and run, in all, for the
 *   least time that there can be between the look and the stop.
 * - Not if it is in a call that only waits (only_waits:
 * lib/capture/restart/syscalls.h). The timer that wakes the tracer wakes threads that
 * wait for a time nearly as late (timer slack, 50 us: prctl(2)), and they wait
 * for the tracer then.
 */
enum activity_run activity_ran(const struct activity_mark *before, const struct activity_mark *now,
			       const struct activity_moments *when, bool only_waits);

/*
 * *ret_place is written with ACTIVITY_BLOCKED. A thread of which the file
 * cannot be read for a lack of memory counts as running: an interrupt says
 * where it is.
 */
enum activity_state activity_look(const struct activity *a, struct activity_place *ret_place);

/*
 * What is known of the registers of a thread at that place, into
 * regs[ARCH_REGS] by DWARF number; returns which (bit n: regs[n]).
 */
uint64_t activity_regs(const struct activity_place *place, uint64_t *regs);

/* For tests: the meaning of a line of task/TID/syscall. */
enum activity_state activity_parse(const char *line, struct activity_place *ret_place);

#endif
