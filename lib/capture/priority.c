#include "lib/capture/priority.h"

#include <sched.h>

#include "lib/capture/state.h"

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
	uint32_t *n = c->realtime.n;

	if (priority == th->realtime || priority > REALTIME_MAX)
		return;
	if (th->realtime > 0)
		n[th->realtime]--;
	if (priority > 0)
		n[priority]++;
	th->realtime = (uint8_t)priority;
	if (priority > c->realtime.highest)
		c->realtime.highest = priority;
	while (c->realtime.highest > 0 && n[c->realtime.highest] == 0)
		c->realtime.highest--;
}

void priority_read(struct thread *th)
{
	set(th, realtime_of(th->tid));
}

void priority_forget(struct thread *th)
{
	set(th, 0);
}
