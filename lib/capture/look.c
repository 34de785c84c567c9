#include "lib/capture/target.h"

#include <sys/ptrace.h>

#include "lib/base/procfs.h"
#include "lib/capture/proc/proc.h"
#include "lib/capture/proc/status.h"

/*
 * An interrupted thread that neither stops nor blocks for this long is told as
 * missed. A runnable thread of 64 on 2 processors waits 130 ms for its turn, in
 * a group of processes with a small share for seconds. The reader's chunks wait
 * for its sample: a little longer than this (SPAN_LAG_NS).
 */
#define PENDING_MAX_NS (4 * NS_PER_SEC)

/*
 * After so many ticks a thread that has not stopped is looked at, then after
 * twice as many, and so on: most stop within the first, of 64 that share 2
 * processors, too.
 */
#define PENDING_LOOK_TICKS 16

static bool same_place(const struct activity_place *a, const struct activity_place *b)
{
	/* Not the call: after a stop, restart_syscall stands for another. */
	return a->sp == b->sp && a->pc == b->pc;
}

/*
 * Takes a sample of a blocked thread without stopping it. Returns 0, -ENOBUFS,
 * -EBUSY, or -EAGAIN if it ran in between. mark: from before it was found
 * blocked; NULL where the kernel does not account: then it has to be in the
 * same place before and after, and is sampled anew at each tick.
 */
static int sample_blocked(struct thread *th, uint64_t tick, uint64_t time_ns,
			  const struct activity_place *place, const struct activity_mark *mark)
{
	uint64_t regs[ARCH_REGS] = {0};
	uint64_t known = activity_regs(place, regs);
	struct record_sample *record;
	struct activity_place place_after;
	struct activity_mark after;
	uint32_t flags = 0;
	bool unchanged;
	size_t size;
	int r;

	if (th->place_known && same_place(&th->place, place)) {
		for (unsigned int i = 0; i < ARCH_REGS; i++)
			if (ARCH_CALLEE_SAVED & (1u << i))
				regs[i] = th->regs[i];
		known |= ARCH_CALLEE_SAVED;
		flags |= SAMPLE_REMEMBERED;
	}
	r = thread_copy(th, tick, time_ns, regs, known, flags, &record, &size);
	if (r < 0)
		return r;
	if (mark != NULL)
		unchanged = activity_mark(&th->activity, &after) && activity_same(&after, mark);
	else
		unchanged = activity_look(&th->activity, &place_after) == ACTIVITY_BLOCKED &&
			    same_place(&place_after, place);
	if (!unchanged) {
		thread_drop(th);
		return -EAGAIN;
	}
	thread_commit(th, size);
	th->told_running = false;
	if (mark != NULL) {
		thread_sleep(th, mark);
		th->asleep_at = *place;
		th->asleep_since_ns = th->target->capture->options.now_ns();
	}
	return 0;
}

/*
 * The leader stays a zombie until the last thread is gone (proc(5), stat). To
 * be asked of one that is ACTIVITY_DEAD: a zombie has no stack any more, so it
 * has no place either, and to read the file of one that has takes three calls.
 */
static enum proc_answer leader_is_dead(const struct thread *th)
{
	char text[512];
	const char *state;

	if (th->tid != (uint32_t)th->target->pid)
		return PROC_NO;
	switch (proc_read_text(th->target->proc_fd, "stat", text, sizeof(text))) {
	case PROC_READ:
		break;
	case PROC_GONE:
		return PROC_YES;
	case PROC_LACK:
		return PROC_UNKNOWN;
	}
	state = procfs_stat_field(text, 3);
	return state != NULL && (state[1] == 'Z' || state[1] == 'X') ? PROC_YES : PROC_NO;
}

/* It is expected no more; the wait status comes with its last thread's. */
static void leader_died(struct thread *th, uint64_t tick, uint64_t time_ns)
{
	th->life = THREAD_DEAD;
	if (th->announced)
		(void)target_tell(th->target, RECORD_EXIT, th->tid, tick, time_ns);
}

/*
 * A core that goes into a pipe, as to systemd-coredump(8), ends where an
 * interrupt meets who writes it: pipe_write() returns, and do_coredump() takes
 * that for the end (fs/coredump.c). An interrupt from before is forgotten when
 * the core begins (zap_process()). Its signal came past us, unless it is that
 * of SECCOMP_RET_KILL_PROCESS, which no tracer sees.
 */
static enum proc_answer dumps_core(const struct thread *th)
{
	return th->may_dump ? status_dumps_core(th->tid) : PROC_NO;
}

/* No sample is taken: these ticks are missed, and the next look tries again. */
static void missed(struct thread *th, enum missed_reason reason, const struct stand *stand)
{
	thread_missed(th, reason, stand->ticks, stand->tick, stand->time_ns);
}

/*
 * Where many threads are looked at, some go to sleep, and others wake, between
 * the reading of their times of running and waiting and the interrupt. So that
 * as many are told to run as do, times that are older than this are read again.
 */
#define LOOK_OLD_NS (20 * NS_PER_US)

static void renew_look(struct thread *th)
{
	th->interrupt_ns = th->target->capture->options.now_ns();
	if (th->unasked > 0 || th->interrupt_ns - th->look_ns <= LOOK_OLD_NS)
		return;
	th->look_known = activity_mark(&th->activity, &th->look);
	th->look_ns = th->interrupt_ns;
}

static void interrupt(struct thread *th, const struct stand *stand,
		      const struct activity_place *blocked_at)
{
	struct capture_counters *counters = th->target->counters;

	switch (dumps_core(th)) {
	case PROC_YES:
		counters->missed[MISSED_EXITED] += stand->ticks;
		return;
	case PROC_UNKNOWN:
		missed(th, MISSED_NO_RESOURCES, stand);
		return;
	case PROC_NO:
		break;
	}
	th->was_blocked = blocked_at != NULL;
	if (blocked_at != NULL)
		th->blocked_at = *blocked_at;
	renew_look(th);
	if (!rest_is_alone(&th->rest) && ptrace(PTRACE_INTERRUPT, th->tid, NULL, NULL) < 0) {
		/* It is dying; wait will say so. Or it is another's by now. */
		th->target->doubt |= th->tid == (uint32_t)th->target->pid;
		counters->missed[MISSED_EXITED] += stand->ticks;
		return;
	}
	thread_set_pending(th, stand->tick, stand->time_ns);
	th->later_ns = 0;
	th->due_ns = th->target->capture->tick.due_ns;
	th->came_ns = th->target->capture->now_ns;
	th->unaccounted = stand->ticks;
	th->next_look = stand->ticks - 1 + PENDING_LOOK_TICKS;
}

/* A thread that was interrupted at an earlier tick. */
static void look_at_pending(struct thread *th, uint64_t ticks, uint64_t tick, uint64_t time_ns)
{
	struct target *t = th->target;
	struct activity_place place;
	struct activity_mark mark;
	enum activity_state state;
	bool marked = false, expired;

	th->unaccounted += ticks;
	if (th->later_ns == 0) {
		th->later_tick = tick;
		th->later_ns = time_ns;
	}
	expired = time_ns - th->due_ns > PENDING_MAX_NS;
	if (th->unaccounted < th->next_look && !expired)
		return;
	th->next_look = 2 * th->unaccounted;
	state = activity_look(&th->activity, &place);
	if (state == ACTIVITY_BLOCKED) {
		marked = activity_mark(&th->activity, &mark);
		state = activity_look(&th->activity, &place);
	}
	if (state == ACTIVITY_DEAD && leader_is_dead(th) == PROC_YES) {
		/* Alive at the interrupt, for all we know, and not since. */
		t->counters->expected -= th->unaccounted - 1;
		t->counters->missed[MISSED_EXITED]++;
		thread_clear_pending(th);
		th->due = DUE_NOTHING;
		leader_died(th, tick, time_ns);
		return;
	}
	/*
	 * In uninterruptible sleep it will not stop. It has been in the kernel
	 * since the interrupt, so its stack is that of the interrupt's tick.
	 */
	if (state == ACTIVITY_BLOCKED && thread_is_known(th) &&
	    sample_blocked(th, th->pending_tick, th->pending_ns, &place, marked ? &mark : NULL) ==
		    0) {
		t->counters->captured++;
		t->counters->filled += th->unaccounted - 1;
		thread_clear_pending(th);
		return;
	}
	if (expired) {
		thread_missed(th, MISSED_NOT_STOPPED, th->unaccounted, th->pending_tick,
			      th->pending_ns);
		thread_clear_pending(th);
	}
}

/*
 * True if the thread has been runnable, but without a processor, since its last
 * stop. There is nothing new to be learnt by another stop: the sample of the
 * last one still holds. The kernel counts each time that a thread gets a
 * processor (slices), and at the stop the thread had none.
 */
static bool has_not_run(const struct thread *th)
{
	return th->look_known && th->unasked == 0 && th->stop_known &&
	       th->look.slices == th->stop.slices && th->group_stop != GROUP_STOP_IN;
}

/* A thread that is awake, and not on its way to a stop. */
static void look_at(struct thread *th, uint64_t ticks, const struct stand *stand)
{
	struct capture_counters *counters = th->target->counters;
	enum missed_reason reason = target_no_room(th->target);
	struct activity_place place;
	enum activity_state state;
	int r;

	/* A tick later it is past what a stop did to its call. */
	if (th->group_stop == GROUP_STOP_AFTER)
		th->group_stop = GROUP_STOP_NONE;
	if (th->target->needs_reset || !thread_announce(th, stand->tick, stand->time_ns, &reason)) {
		counters->missed[reason] += ticks;
		return;
	}
	counters->missed[MISSED_LATE] += ticks - stand->ticks - stand->before;
	counters->repeated += stand->before;
	if (!thread_has_room(th)) {
		missed(th, target_no_room(th->target), stand);
		return;
	}
	if (target_is_slow(th->target)) {
		missed(th, MISSED_MEMORY_SLOW, stand);
		return;
	}
	if (has_not_run(th)) {
		thread_tell_waiting(th, stand->tick, stand->time_ns);
		counters->repeated += stand->ticks;
		return;
	}
	state = activity_look(&th->activity, &place);
	if (state == ACTIVITY_BLOCKED && th->unasked > 0) {
		/* The mark that goes before was not asked for. */
		thread_ask(th);
		state = activity_look(&th->activity, &place);
	}
	switch (state == ACTIVITY_DEAD ? leader_is_dead(th) : PROC_NO) {
	case PROC_YES:
		counters->expected -= stand->ticks;
		leader_died(th, stand->tick, stand->time_ns);
		return;
	case PROC_UNKNOWN:
		missed(th, MISSED_NO_RESOURCES, stand);
		return;
	case PROC_NO:
		break;
	}
	if (state == ACTIVITY_BLOCKED) {
		r = sample_blocked(th, stand->tick, stand->time_ns, &place,
				   th->look_known ? &th->look : NULL);
		if (r == 0) {
			counters->captured++;
			counters->filled += stand->ticks - 1;
			return;
		}
		if (r != -EAGAIN) {
			missed(th, missed_reason_of(th->target, r), stand);
			return;
		}
	}
	interrupt(th, stand, state == ACTIVITY_BLOCKED ? &place : NULL);
}

void thread_look(struct thread *th, uint64_t ticks, const struct stand *stand)
{
	const struct target *t = th->target;

	if (th->due == DUE_SAMPLE)
		look_at_pending(th, ticks, t->last_tick, t->last_ns);
	else
		look_at(th, ticks, stand);
}
