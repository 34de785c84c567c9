#include "lib/capture/look.h"

#include <sys/ptrace.h>

#include "lib/base/procfs.h"
#include "lib/capture/balance.h"
#include "lib/capture/exec.h"
#include "lib/capture/proc/proc.h"
#include "lib/capture/proc/status.h"
#include "lib/capture/ptrace/arch.h"
#include "lib/capture/record.h"
#include "lib/capture/restart/resume.h"
#include "lib/capture/sample.h"
#include "lib/capture/sleepers.h"
#include "lib/capture/slow_memory.h"
#include "lib/capture/state.h"
#include "lib/capture/stop.h"
#include "lib/capture/tracees.h"
#include "lib/capture/waits.h"

/*
 * An interrupted thread that neither stops nor blocks for this long counts as missed. With 64
 * runnable threads on 2 processors a thread waits 130 ms for its turn; in a control group with a
 * small share it waits seconds. The reader's chunks wait for the sample a little longer than this
 * (WINDOW_LAG_NS).
 */
#define PENDING_MAX_NS (4 * NS_PER_SEC)

/*
 * A thread that has not stopped is looked at after so many ticks, then after twice as many, and so
 * on. Even of 64 threads that share 2 processors, most stop before the first of these.
 */
#define PENDING_LOOK_TICKS 16

/*
 * The kernel begins a core dump within this time of the stop by its signal. A thread that lives
 * longer was not ended by the signal: the first process of a PID namespace is not.
 */
#define DUMP_BEGINS_NS NS_PER_SEC

static bool same_place(const struct activity_place *a, const struct activity_place *b)
{
	/*
	 * The number of the call is not compared, because after a stop it can be restart_syscall.
	 */
	return a->sp == b->sp && a->pc == b->pc;
}

int look_sample_blocked(struct thread *th, uint64_t tick, uint64_t time_ns,
			const struct activity_place *place, const struct activity_mark *mark)
{
	uint64_t regs[ARCH_REGS] = {0};
	const uint64_t recalled = waits_recall(th, place, regs);
	const uint64_t known = activity_regs(place, regs) | recalled;
	const uint32_t flags = recalled != 0 ? SAMPLE_REMEMBERED : 0;
	struct record_sample *record;
	struct activity_place place_after;
	struct activity_mark after;
	bool unchanged;
	size_t size;
	int r;

	r = record_begin_sample(th, tick, time_ns, regs, known, flags, &record, &size);
	if (r < 0)
		return r;
	waits_check(th, record);
	if (mark != NULL)
		unchanged = activity_mark(&th->activity, &after) && activity_same(&after, mark);
	else
		unchanged = activity_look(&th->activity, &place_after) == ACTIVITY_BLOCKED &&
			    same_place(&place_after, place);
	/* The stack may be that of a program that the process has executed since the last tick. */
	if (th->target->capture->options.perf != NULL)
		unchanged = unchanged && exec_program_is_known(th->target);
	if (!unchanged) {
		record_drop_sample(th);
		return -EAGAIN;
	}
	record_commit_sample(th, size, false);
	if (mark != NULL)
		sleepers_add(th, mark, place);
	return 0;
}

/*
 * Returns PROC_YES if the thread is a leader that is dead, while other threads live: it stays a
 * zombie until the last thread is gone (proc(5), stat). Called only for ACTIVITY_DEAD, because it
 * takes three system calls; a zombie has no stack and so no place.
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

/*
 * Handles a dead leader, of which there are no more samples. Its wait status comes with that of the
 * last thread.
 */
static void leader_died(struct thread *th, uint64_t tick, uint64_t time_ns)
{
	tracees_set_life(th, THREAD_DEAD);
	if (th->reader.announced)
		(void)record_event(th->target, RECORD_EXIT, th->tid, tick, time_ns);
}

/*
 * Returns true if an interrupt would harm a core dump. If a core goes into a pipe, as to
 * systemd-coredump(8), an interrupt of the thread that writes it makes pipe_write() return, and
 * do_coredump() takes that for the end (fs/coredump.c). An interrupt from before the dump is
 * dropped when the dump begins (zap_process()). Capture has seen the signal that causes a core,
 * unless it is that of SECCOMP_RET_KILL_PROCESS, which is not reported to tracers.
 *
 * A dump may begin between a reading of /proc and the interrupt. So a thread whose signal has its
 * default action counts as dumping from the stop on.
 */
static enum proc_answer dumps_core(const struct thread *th)
{
	const uint64_t now_ns = th->target->capture->options.now_ns();

	if (!th->dump.possible)
		return PROC_NO;
	if (th->dump.signal != 0 && now_ns - th->stop.ns < DUMP_BEGINS_NS &&
	    status_has_default_action(th->tid, th->dump.signal))
		return PROC_YES;
	return status_dumps_core(th->tid);
}

/* Counts the covered ticks as missed. No sample is taken; the next look tries again. */
static void missed(struct thread *th, enum missed_reason reason,
		   const struct covered_ticks *covered)
{
	record_missed(th, reason, covered->n, covered->first, covered->first_ns);
}

/* Reads the mark of an interrupt. */
static void mark_interrupt(struct thread *th)
{
	th->pending.mark_known =
		th->look.without_mark == 0 && activity_mark(&th->activity, &th->pending.mark);
	th->pending.mark_ns = th->target->capture->options.now_ns();
}

static void interrupt(struct thread *th, const struct covered_ticks *covered,
		      const struct activity_place *blocked_at)
{
	struct capture_counters *counters = th->target->counters;

	switch (dumps_core(th)) {
	case PROC_YES:
		counters->missed[MISSED_EXITED] += covered->n;
		return;
	case PROC_UNKNOWN:
		missed(th, MISSED_NO_RESOURCES, covered);
		return;
	case PROC_NO:
		break;
	}
	th->pending.was_blocked = blocked_at != NULL;
	if (blocked_at != NULL)
		th->pending.blocked_at = *blocked_at;
	mark_interrupt(th);
	if (!resume_is_undisturbed(&th->resumed) &&
	    ptrace(PTRACE_INTERRUPT, th->tid, NULL, NULL) < 0) {
		/*
		 * Either the thread is dying, which waitpid(2) will report, or another tracer has
		 * it now.
		 */
		th->target->exec.doubt |= th->tid == (uint32_t)th->target->pid;
		counters->missed[MISSED_EXITED] += covered->n;
		return;
	}
	tracees_set_pending(th, covered->first, covered->first_ns);
	th->pending.later_ns = 0;
	th->pending.due_ns = th->target->capture->tick.due_ns;
	th->pending.came_ns = th->target->capture->now_ns;
	th->pending.unaccounted = covered->n;
	th->pending.next_look = covered->n - 1 + PENDING_LOOK_TICKS;
}

/* Looks at a thread that was interrupted at an earlier tick and has not stopped. */
static void look_at_pending(struct thread *th, uint64_t ticks, uint64_t tick, uint64_t time_ns)
{
	struct traced_process *t = th->target;
	struct activity_place place;
	struct activity_mark mark;
	enum activity_state state;
	bool marked = false, expired;

	th->pending.unaccounted += ticks;
	if (th->pending.later_ns == 0) {
		th->pending.later_tick = tick;
		th->pending.later_ns = time_ns;
	}
	expired = time_ns - th->pending.due_ns > PENDING_MAX_NS;
	if (th->pending.unaccounted < th->pending.next_look && !expired)
		return;
	th->pending.next_look = 2 * th->pending.unaccounted;
	state = activity_look(&th->activity, &place);
	if (state == ACTIVITY_BLOCKED) {
		marked = activity_mark(&th->activity, &mark);
		state = activity_look(&th->activity, &place);
	}
	if (state == ACTIVITY_DEAD && leader_is_dead(th) == PROC_YES) {
		/*
		 * As far as is known, the leader was alive at the tick of the interrupt and dead at
		 * all later ones. So only that tick counts.
		 */
		t->counters->expected -= th->pending.unaccounted - 1;
		t->counters->missed[MISSED_EXITED]++;
		tracees_stop_came(th, false);
		leader_died(th, tick, time_ns);
		return;
	}
	/*
	 * In uninterruptible sleep the thread does not stop. It has been in the kernel since the
	 * interrupt, so its stack is the same as at the interrupt's tick.
	 */
	if (state == ACTIVITY_BLOCKED && record_knows(th) &&
	    look_sample_blocked(th, th->pending.tick, th->pending.ns, &place,
				marked ? &mark : NULL) == 0) {
		t->counters->captured++;
		t->counters->filled += th->pending.unaccounted - 1;
		tracees_clear_pending(th);
		return;
	}
	if (expired) {
		record_missed(th, MISSED_NOT_STOPPED, th->pending.unaccounted, th->pending.tick,
			      th->pending.ns);
		tracees_clear_pending(th);
	}
}

/*
 * Returns true if the thread has waited for a processor since its last stop: then another stop
 * would show nothing new, and its last sample is still valid. The kernel counts how often a thread
 * gets a processor (slices), and at the stop the thread had none.
 */
static bool has_not_run(const struct thread *th)
{
	return th->look.known && th->look.without_mark == 0 && th->stop.known &&
	       th->look.mark.slices == th->stop.mark.slices && th->group_stop != GROUP_STOP_IN;
}

/*
 * Returns true if the thread, which was found blocked after its mark was read, was on a processor
 * at that mark: it has run since then, without another slice.
 */
static bool ran_and_slept(const struct thread *th)
{
	struct activity_mark now;

	return th->look.known && activity_mark(&th->activity, &now) &&
	       now.slices == th->look.mark.slices && now.run_ns != th->look.mark.run_ns;
}

/* The thread is blocked, and ran at the tick. The next tick looks at it again. */
static void ran_unseen(struct thread *th, const struct covered_ticks *covered)
{
	record_running(th, covered->first, covered->first_ns);
	balance_tell_running(th, covered->n);
	th->target->counters->repeated += covered->n;
}

/* The thread had no processor at the tick: its last sample is still valid. */
static void was_ready(struct thread *th, const struct covered_ticks *covered)
{
	record_ready(th, covered->first, covered->first_ns);
	balance_tell_ready(th, covered->n);
	th->target->counters->repeated += covered->n;
}

/*
 * Returns true if a blocked thread is interrupted although it has not run. Outside of a call, as in
 * a page fault, a function without a frame may have its return address in a register only.
 */
static bool needs_stop(struct thread *th, const struct activity_place *place)
{
	if (place->call < 0)
		return ARCH_LINK_REGISTER;
	waits_seen(th, place);
	return waits_need_stop(th, place);
}

/* Looks at a thread that is awake and not interrupted. */
static void look_at(struct thread *th, uint64_t ticks, const struct covered_ticks *covered)
{
	struct capture_counters *counters = th->target->counters;
	enum missed_reason reason = record_no_room_reason(th->target);
	struct activity_place place;
	enum activity_state state;
	int r;

	/* One tick later the thread has left the call that the group-stop interrupted. */
	stop_note_left_call(th);
	if (th->target->reader.needs_reset ||
	    !record_announce(th, covered->first, covered->first_ns, &reason)) {
		counters->missed[reason] += ticks;
		return;
	}
	counters->missed[MISSED_LATE] += ticks - covered->n - covered->n_unchanged;
	counters->repeated += covered->n_unchanged;
	if (!record_has_room(th)) {
		missed(th, record_no_room_reason(th->target), covered);
		return;
	}
	if (slow_memory_is_avoided(th->target)) {
		missed(th, MISSED_MEMORY_SLOW, covered);
		return;
	}
	if (has_not_run(th)) {
		was_ready(th, covered);
		return;
	}
	state = activity_look(&th->activity, &place);
	if (state == ACTIVITY_BLOCKED && th->look.without_mark > 0) {
		/* The mark must be older than the look that found the thread blocked. */
		sleepers_read_times(th);
		state = activity_look(&th->activity, &place);
	}
	switch (state == ACTIVITY_DEAD ? leader_is_dead(th) : PROC_NO) {
	case PROC_YES:
		counters->expected -= covered->n;
		leader_died(th, covered->first, covered->first_ns);
		return;
	case PROC_UNKNOWN:
		missed(th, MISSED_NO_RESOURCES, covered);
		return;
	case PROC_NO:
		break;
	}
	balance_compare(th);
	if (state == ACTIVITY_BLOCKED) {
		switch (balance_of_blocked(th, covered->n)) {
		case ACTIVITY_RAN:
			ran_unseen(th, covered);
			return;
		case ACTIVITY_WAS_READY:
			was_ready(th, covered);
			return;
		case ACTIVITY_WAITED:
		case ACTIVITY_MAY_HAVE_RUN:
			break;
		}
		if (needs_stop(th, &place)) {
			interrupt(th, covered, &place);
			return;
		}
		r = look_sample_blocked(th, covered->first, covered->first_ns, &place,
					th->look.known ? &th->look.mark : NULL);
		if (r == 0) {
			counters->captured++;
			counters->filled += covered->n - 1;
			return;
		}
		if (r != -EAGAIN) {
			missed(th, record_missed_reason(th->target, r), covered);
			return;
		}
		if (ran_and_slept(th)) {
			ran_unseen(th, covered);
			return;
		}
		state = activity_look(&th->activity, &place);
	}
	interrupt(th, covered, state == ACTIVITY_BLOCKED ? &place : NULL);
}

void look_at_thread(struct thread *th, uint64_t ticks, const struct covered_ticks *covered)
{
	const struct traced_process *t = th->target;

	if (th->due == DUE_SAMPLE)
		look_at_pending(th, ticks, t->ticks.span.last, t->ticks.span.last_ns);
	else
		look_at(th, ticks, covered);
}
