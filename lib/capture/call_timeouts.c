#include "lib/capture/call_timeouts.h"

#include <sys/ptrace.h>

#include "lib/capture/ptrace/arch.h"
#include "lib/capture/restart/resume.h"
#include "lib/capture/state.h"
#include "lib/capture/tracees.h"

/*
 * Returns true if the thread is still in the wait in which a tick found it blocked. If a signal has
 * ended its sleep, the thread has got a processor once since the tick. If it has got one more
 * often, it may be in another wait. One case cannot be distinguished: the thread has left one wait,
 * and the signal came just before it entered the next wait at the same place.
 */
static bool is_in_the_same_wait(const struct thread *th, const struct arch_regs *raw)
{
	struct activity_mark mark;
	uint64_t regs[ARCH_REGS];

	if (!th->asleep || !activity_mark(&th->activity, &mark))
		return false;
	arch_to_dwarf(raw, regs);
	return mark.slices == th->sleep.mark.slices + 1 && regs[ARCH_SP] == th->sleep.place.sp &&
	       regs[ARCH_PC] == th->sleep.place.pc;
}

uint64_t call_timeouts_since(const struct thread *th, const struct arch_regs *raw, uint64_t now_ns)
{
	if (th->resumed.state != RESUME_NONE)
		return th->resumed.since_ns;
	return is_in_the_same_wait(th, raw) ? th->sleep.since_ns : now_ns;
}

void call_timeouts_watch(const struct thread *th)
{
	struct capture *c = th->target->capture;

	if (th->resumed.state != RESUME_NONE && th->resumed.late)
		c->timeout_ns = min_u64(c->timeout_ns, th->resumed.until_ns);
}

static void end_waits(struct capture *c, struct thread *list, uint64_t now_ns)
{
	for (struct thread *th = list; th != NULL; th = th->next) {
		if (th->resumed.state == RESUME_NONE)
			continue;
		if (now_ns < th->resumed.until_ns) {
			call_timeouts_watch(th);
			continue;
		}
		/*
		 * A failure needs no handling: waitpid(2) reports a dead thread. If the thread does
		 * not stop at once, the next tick interrupts it again, which has no further effect.
		 */
		(void)ptrace(PTRACE_INTERRUPT, th->tid, NULL, NULL);
		tracees_expect_stop(th);
		c->timeout_ns = 0;
	}
}

void call_timeouts_end_due(struct capture *c, uint64_t now_ns)
{
	if (now_ns < c->timeout_ns)
		return;
	c->timeout_ns = UINT64_MAX;
	FOR_EACH_TARGET (t, c) {
		end_waits(c, t->threads.awake, now_ns);
		end_waits(c, t->threads.asleep, now_ns);
	}
}
