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
#include "lib/capture/ptrace/arch.h"

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
 * Returns true if two threads at these places, with the same sp and pc, wait in calls of the same
 * place in the program: the number of the call is the same, and so are those arguments that are
 * addresses, from argument `first` on. Other arguments change from wait to wait: a futex's value, a
 * timeout. After a stop the number can be that of restart_syscall(2).
 */
bool activity_same_call(const struct activity_place *a, const struct activity_place *b,
			unsigned int first);

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

/* What a thread did at a tick. */
enum activity_at_tick {
	ACTIVITY_WAITED,       /* blocked */
	ACTIVITY_WAS_READY,    /* runnable without a processor */
	ACTIVITY_MAY_HAVE_RUN, /* the readings do not tell whether it was ready or ran */
	ACTIVITY_RAN,	       /* on a processor */
};

/* What was read around an interrupt of a thread. Times are by the tracer's clock. */
struct activity_readings {
	uint64_t due_ns;  /* the tick was due */
	uint64_t came_ns; /* the tracer began to work for the tick */
	struct activity_mark first;
	bool was_blocked;	   /* the look that followed, at task/TID/syscall, says so */
	struct activity_mark look; /* after that, just before the interrupt */
	uint64_t look_ns;
	struct activity_mark stop;
	uint64_t stop_ns;     /* the tracer handled the stop */
	bool stopped_waiting; /* the stop is in a system call, or where the look found the thread */
	bool woken; /* the stop is in a call that has waited and ends now (syscall_waits()) */
};

/*
 * Decides from the readings what the thread did at the tick. A slice begins when the thread gets a
 * processor; the kernel adds a wait for a processor when the wait ends, which is when the slice
 * begins (sched_info_arrive() in kernel/sched/stats.h). To reach its stop the thread had a
 * processor. So after one new slice, stop_ns less the growth of the wait time is the moment at
 * which the thread was queued, or a little later; after more slices, it was queued then or earlier.
 * The first row that applies decides:
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
 *    queued until the tracer came; woken     the tracer's timer woke it, too, or    WAITED
 *                                            another thread gave it work
 *    queued until the tracer came            the tracer took its processor          MAY_HAVE_RUN
 *    queued after the look                   had its processor at the look          MAY_HAVE_RUN
 *    queued in between; stopped waiting      was woken after the tick               WAITED
 *    queued in between                       lost its processor after the tick      MAY_HAVE_RUN
 *
 * A tick is due some 0.1 ms before the look on a virtual machine; the timer's interrupt takes the
 * tracer's processor half way in between. The table of check_activity.c has a reading for each row,
 * and the program of tests/targets that shows it.
 */
enum activity_at_tick activity_at_tick(const struct activity_readings *r);

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
