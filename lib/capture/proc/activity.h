/*
 * Looks at a thread without stopping it: whether it has run, whether it is blocked, and where. Two
 * files of proc(5) stay open for each thread. task/TID/schedstat has the run time and the number of
 * time slices. task/TID/syscall has the system call, sp and pc of a blocked thread.
 *
 * Two equal readings of schedstat mean that the thread has not run in between, provided that
 * task/TID/syscall showed it as blocked after the first one. Beware: while a thread runs, its
 * schedstat may not change for some ticks.
 */
#ifndef LIB_CAPTURE_PROC_ACTIVITY_H
#define LIB_CAPTURE_PROC_ACTIVITY_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/capture/ptrace/arch.h"

/* The two open files. */
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
	long call; /* -1: not in a system call */
	uint64_t arguments[ARCH_ARGUMENTS];
	uint64_t sp;
	uint64_t pc;
};

/*
 * Returns true if places a and b are waits in the same call of the program. The caller knows that
 * they have the same sp and pc. The function compares
 * - the numbers of the calls. After a stop a call can have the number of restart_syscall(2), so
 *   this number counts as equal to any other;
 * - from argument `first` on, the arguments that are addresses. Other arguments, such as a futex's
 *   value, change from wait to wait. The caller passes 1 as `first` if argument 0 of a place is not
 *   known, else 0.
 */
bool activity_same_call(const struct activity_place *a, const struct activity_place *b,
			unsigned int first);

/*
 * Opens the files of a thread below proc_fd, the descriptor of its /proc/PID. Returns 0, -ESRCH if
 * the thread is gone, or -errno for a lack of descriptors or memory (PROC_LACK, proc.h).
 */
must_check int activity_open(struct activity *a, int proc_fd, uint32_t tid);
/* Closes the files. Safe after a failed activity_open(). */
void activity_close(struct activity *a);

/*
 * Reads a mark. Returns false if schedstat cannot be read, or if it has 0 slices: the thread has
 * never run, or the kernel does not count. So a mark that was read has slices above 0.
 */
bool activity_mark(const struct activity *a, struct activity_mark *ret);

/* Returns true if run_ns and slices are equal. The top of this header says what that proves. */
static inline bool activity_same(const struct activity_mark *a, const struct activity_mark *b)
{
	return a->run_ns == b->run_ns && a->slices == b->slices;
}

/* What a thread did at a tick. */
enum activity_at_tick {
	ACTIVITY_WAITED,       /* blocked */
	ACTIVITY_WAS_READY,    /* runnable without a processor */
	ACTIVITY_MAY_HAVE_RUN, /* the readings do not tell whether it was ready or ran */
	ACTIVITY_RAN,	       /* on a processor */
};

/* What was read around an interrupt of a thread. Times are ns, CLOCK_MONOTONIC. */
struct activity_readings {
	uint64_t due_ns;		/* the tick was due */
	uint64_t came_ns;		/* the tracer began to work for the tick */
	struct activity_mark first;	/* read for the tick, before the look */
	bool was_blocked;		/* activity_look() after that found the thread blocked */
	struct activity_mark interrupt; /* after that, just before the interrupt */
	uint64_t interrupt_ns;		/* when that mark was read */
	struct activity_mark stop;	/* at the stop */
	uint64_t stop_ns;		/* the tracer began to handle the stop */
	/* The stop is in a system call, or at the place where the look found the thread blocked. */
	bool stopped_waiting;
	bool woken; /* the stop is in a call that has waited and ends now (syscall_waits()) */
};

/*
 * Decides from the readings what the thread did at the tick. A thread is queued when it begins to
 * wait for a processor, and a slice begins when it gets one. The kernel adds a wait to wait_ns when
 * the slice begins (sched_info_arrive() in kernel/sched/stats.h). At the stop the thread has a
 * processor, so wait_ns contains its last wait. The function computes when the thread was queued:
 * stop_ns minus the growth of wait_ns since the mark `interrupt` (since `first`, if no slice has
 * begun after `interrupt`). After one new slice this time is right, or a little late; after more
 * slices the thread was queued at this time or earlier. Example, with times in us: the tick was due
 * at 0, the look at 100. If the thread stops at 900 after one new slice, and wait_ns has grown by
 * 650, the thread was queued at 250, after the look: MAY_HAVE_RUN. The comparisons of times allow
 * for errors of 20 to 70 us.
 *
 * The first row that applies decides (results without ACTIVITY_; "blocked": was_blocked; "stopped
 * waiting": stopped_waiting):
 *
 *   what was read                            what it means                          result
 *   ---------------------------------------  -------------------------------------  -----------
 *   blocked; stopped waiting                 blocked at the look                    WAITED
 *   blocked; stopped elsewhere               woken since, the stack is from then    MAY_HAVE_RUN
 *   queued before the tick was due           it waited for a processor all the      WAS_READY
 *                                            time
 *   no slice since the look                  it had its processor at the look       RAN
 *   two slices or more since the look        lost a processor at some time          MAY_HAVE_RUN
 *   one slice since the look:
 *    queued before the tracer came; woken    the tracer's timer woke it, too, or    WAITED
 *                                            another thread gave it work
 *    queued before the tracer came           the tracer took its processor          MAY_HAVE_RUN
 *    queued after the look                   had its processor at the look          MAY_HAVE_RUN
 *    queued in between; stopped waiting      was woken after the tick               WAITED
 *    queued in between                       lost its processor after the tick      MAY_HAVE_RUN
 *
 * On a virtual machine the look comes some 0.1 ms after the tick was due, and the timer's interrupt
 * half way in between. The table of check_activity.c has a reading for each row, and the program of
 * tests/targets that shows it.
 */
enum activity_at_tick activity_at_tick(const struct activity_readings *r);

/*
 * Reads task/TID/syscall. Sets *ret_place only if the result is ACTIVITY_BLOCKED. Returns
 * ACTIVITY_DEAD if the thread is gone, or has no stack any more, as a zombie. If the file cannot be
 * read for another reason (PROC_LACK, proc.h), returns ACTIVITY_RUNNING: then the caller interrupts
 * the thread, and the stop shows where it is.
 */
enum activity_state activity_look(const struct activity *a, struct activity_place *ret_place);

/*
 * Writes the registers that are known of a thread at this place into regs[ARCH_REGS], by DWARF
 * number: sp, pc, and in a system call the one that has the first argument. Returns which they are
 * (bit n: regs[n]).
 */
uint64_t activity_regs(const struct activity_place *place, uint64_t *regs);

/* For tests: the meaning of a line of task/TID/syscall. */
enum activity_state activity_parse(const char *line, struct activity_place *ret_place);

#endif
