#include "lib/capture/target.h"

#include <sys/ptrace.h>

/*
 * A thread that was found blocked at a tick and was then taken out of that wait
 * by a signal has had the processor once since, no matter how long before. Who
 * has had it more often may be in another wait by now. Who came out of the one
 * and was about to begin the next when the signal came is taken for a thread
 * that waited all the time: a microsecond in which it would have to come.
 */
static bool is_in_the_same_wait(const struct thread *th, const struct user_regs_struct *raw)
{
	struct activity_mark mark;
	uint64_t regs[ARCH_REGS];

	if (!th->asleep || !activity_mark(&th->activity, &mark))
		return false;
	arch_to_dwarf(raw, regs);
	return mark.slices == th->mark.slices + 1 && regs[ARCH_SP] == th->asleep_at.sp &&
	       regs[ARCH_PC] == th->asleep_at.pc;
}

uint64_t thread_waits_since(const struct thread *th, const struct user_regs_struct *raw,
			    uint64_t now_ns)
{
	if (th->rest.state != REST_NONE)
		return th->rest.since_ns;
	return is_in_the_same_wait(th, raw) ? th->asleep_since_ns : now_ns;
}

void thread_watch_wait(const struct thread *th)
{
	struct capture *c = th->target->capture;

	if (th->rest.state != REST_NONE && th->rest.late)
		c->waits_ns = min_u64(c->waits_ns, th->rest.until_ns);
}

static void end_waits(struct capture *c, struct thread *list, uint64_t now_ns)
{
	for (struct thread *th = list; th != NULL; th = th->next) {
		if (th->rest.state == REST_NONE)
			continue;
		if (now_ns < th->rest.until_ns) {
			thread_watch_wait(th);
			continue;
		}
		/*
		 * If it dies, wait will say so. It may not stop at once; then
		 * the next tick does this again, which does nothing.
		 */
		(void)ptrace(PTRACE_INTERRUPT, th->tid, NULL, NULL);
		if (th->due == DUE_NOTHING)
			th->due = DUE_STOP;
		c->waits_ns = 0;
	}
}

void capture_end_waits(struct capture *c, uint64_t now_ns)
{
	if (now_ns < c->waits_ns)
		return;
	c->waits_ns = REST_NEVER;
	FOR_EACH_TARGET (t, c) {
		end_waits(c, t->awake, now_ns);
		end_waits(c, t->asleep, now_ns);
	}
}
