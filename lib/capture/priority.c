#include <sched.h>

#include "lib/capture/target.h"

static int realtime_of(uint32_t tid)
{
	struct sched_param param;
	const int scheduler = sched_getscheduler((pid_t)tid);

	if (scheduler < 0)
		return 0;
	switch (scheduler & ~SCHED_RESET_ON_FORK) {
	case SCHED_FIFO:
	case SCHED_RR:
		return sched_getparam((pid_t)tid, &param) < 0 ? 0 : param.sched_priority;
	default:
		return 0;
	}
}

static void set(struct thread *th, int priority)
{
	struct capture *c = th->target->capture;
	uint32_t *n = c->realtime_threads;

	if (priority == th->realtime || priority > REALTIME_MAX)
		return;
	if (th->realtime > 0)
		n[th->realtime]--;
	if (priority > 0)
		n[priority]++;
	th->realtime = (uint8_t)priority;
	if (priority > c->realtime)
		c->realtime = priority;
	while (c->realtime > 0 && n[c->realtime] == 0)
		c->realtime--;
}

void thread_look_priority(struct thread *th)
{
	set(th, realtime_of(th->tid));
}

void thread_forget_priority(struct thread *th)
{
	set(th, 0);
}

int capture_realtime_priority(const struct capture *c)
{
	return c->realtime;
}
