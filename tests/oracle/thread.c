#include "tests/oracle/thread.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "lib/capture/proc/activity.h"
#include "lib/capture/ptrace/arch.h"

int thread_step(struct thread_stop *stop)
{
	int status;

	if (ptrace(PTRACE_SINGLESTEP, stop->tid, NULL,
		   tracee_delivery(stop->status, stop->signal)) < 0 ||
	    waitpid(stop->tid, &status, __WALL) != stop->tid)
		return -errno;
	stop->status = tracee_classify(status, &stop->signal);
	/* SIGTRAP of the single step itself is not delivered to the thread. */
	if (stop->status == TRACEE_SIGNAL && stop->signal == SIGTRAP)
		stop->status = TRACEE_OTHER;
	return stop->status == TRACEE_DEAD ? -ESRCH : 0;
}

/* Returns true if the thread is still blocked at place, and has not run since mark was taken. */
static bool stayed(const struct activity *a, const struct activity_mark *mark,
		   const struct activity_place *place)
{
	struct activity_place now;
	struct activity_mark mark_now;

	return activity_look(a, &now) == ACTIVITY_BLOCKED && now.call == place->call &&
	       now.sp == place->sp && now.pc == place->pc && activity_mark(a, &mark_now) &&
	       activity_same(mark, &mark_now);
}

int thread_copy_blocked(const struct live *l, int32_t tid, uint64_t second,
			struct record_sample *record, size_t *ret_size)
{
	uint64_t regs[ARCH_REGS] = {0};
	struct activity_place place;
	struct activity_mark mark;
	struct activity activity;
	int r;

	r = activity_open(&activity, l->proc_fd, (uint32_t)tid);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	r = -EBUSY;
	if (activity_mark(&activity, &mark) &&
	    activity_look(&activity, &place) == ACTIVITY_BLOCKED && place.call >= 0) {
		*ret_size = thread_copy(l, tid, regs, activity_regs(&place, regs), second, record);
		if (stayed(&activity, &mark, &place))
			r = 0;
	}
	activity_close(&activity);
	return r;
}
