/*
 * Looks at a thread without stopping it: whether it has run, whether it is blocked, and where. Two
 * files of proc(5) stay open for each thread. task/TID/schedstat has the run time and the number of
 * time slices: two equal readings mean that the thread has not run in between. task/TID/syscall has
 * the system call, sp and pc of a blocked thread.
 *
 * Beware: the schedstat of a running thread may not change for some ticks. So two equal readings
 * prove that the thread has not run in between only if task/TID/syscall showed the thread as
 * blocked after the first reading.
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

/* A reading of schedstat, called a mark. */
struct activity_mark {
	uint64_t run_ns;
	uint64_t wait_ns; /* runnable, without a processor */
	uint64_t slices;  /* how often the thread got a processor */
};

enum activity_state {
	ACTIVITY_RUNNING, /* on a processor or waiting for one */
	ACTIVITY_BLOCKED, /* in a system call, or in a page fault (call -1) */
	ACTIVITY_DEAD,
};

/* The place at which a thread is blocked. */
struct activity_place {
	long call;	   /* -1: not in a system call */
	uint64_t argument; /* the first argument of the call */
	uint64_t sp;
	uint64_t pc;
};

/*
 * Opens the files of a thread below proc_fd, the descriptor of its /proc/PID. Returns 0, -ESRCH if
 * the thread is gone, or the negative errno of PROC_LACK (proc.h).
 */
must_check int activity_open(struct activity *a, int proc_fd, uint32_t tid);
void activity_close(struct activity *a);

/* Reads a mark. Returns false if the file cannot be read, or the kernel does not fill it in. */
bool activity_mark(const struct activity *a, struct activity_mark *ret);

/* Returns true if the thread has not run between the two marks. */
static inline bool activity_same(const struct activity_mark *a, const struct activity_mark *b)
{
	return a->run_ns == b->run_ns && a->slices == b->slices;
}

/* Times around the interrupt of a thread, by the tracer's clock. */
struct activity_moments {
	uint64_t due_ns;	 /* the tick was due */
	uint64_t came_ns;	 /* the tracer began to work for the tick */
	uint64_t look_ns;	 /* the first mark was read */
	uint64_t not_stopped_ns; /* the last time at which the thread surely had not stopped yet */
	uint64_t stop_ns;	 /* the tracer handled the thread's stop */
};

enum activity_run {
	ACTIVITY_WAITED,
	ACTIVITY_MAY_HAVE_RUN,
	ACTIVITY_RAN,
};

/*
 * Decides from two marks whether a thread that was runnable at the look was on a processor then.
 * before: read at the look; now: read at the stop that followed. The first rule that applies
 * decides:
 *
 * 1. Equal slices: ACTIVITY_RAN. The thread ran to reach the stop, and has got no processor since
 *    the look, so it had one at the look. This is certain; the other rules are not.
 * 2. only_waits (restart/syscalls.h): ACTIVITY_WAITED. The timer that wakes the tracer also wakes
 *    threads whose own timers expire up to 50 us later (timer slack: prctl(2)). They wait for the
 *    tracer's processor, and would seem to run at each tick.
 * 3. Wait time and run time together are less than the time from look_ns to not_stopped_ns:
 *    ACTIVITY_WAITED, because the thread has slept in between.
 * 4. The thread lost its processor at stop_ns less the time waited, or before: the kernel adds a
 *    wait when the wait ends (sched_info_arrive() in kernel/sched/stats.h). If that is after the
 *    look, or about when the tick was due and the tracer needed this processor (due_ns to
 *    came_ns): ACTIVITY_MAY_HAVE_RUN.
 * 5. ACTIVITY_WAITED.
 */
enum activity_run activity_ran(const struct activity_mark *before, const struct activity_mark *now,
			       const struct activity_moments *when, bool only_waits);

/*
 * Reads task/TID/syscall. *ret_place is written with ACTIVITY_BLOCKED. If the file cannot be read
 * for a lack of memory, the thread counts as running: an interrupt will show where it is.
 */
enum activity_state activity_look(const struct activity *a, struct activity_place *ret_place);

/*
 * Writes the registers that are known of a thread at that place into regs[ARCH_REGS], by DWARF
 * number; returns which are known (bit n: regs[n]).
 */
uint64_t activity_regs(const struct activity_place *place, uint64_t *regs);

/* For tests: the meaning of a line of task/TID/syscall. */
enum activity_state activity_parse(const char *line, struct activity_place *ret_place);

#endif
