#include "lib/capture/stop.h"

#include <assert.h>
#include <string.h>
#include <sys/ptrace.h>

#include "lib/capture/balance.h"
#include "lib/capture/call_timeouts.h"
#include "lib/capture/proc/memory.h"
#include "lib/capture/ptrace/arch.h"
#include "lib/capture/ptrace/tracee.h"
#include "lib/capture/record.h"
#include "lib/capture/restart/repair.h"
#include "lib/capture/restart/resume.h"
#include "lib/capture/restart/syscalls.h"
#include "lib/capture/sample.h"
#include "lib/capture/sleepers.h"
#include "lib/capture/slow_memory.h"
#include "lib/capture/state.h"
#include "lib/capture/tracees.h"
#include "lib/capture/waits.h"

void stop_continue(uint32_t tid, enum tracee_status status, int signal, int how)
{
	if (status == TRACEE_GROUP_STOP)
		how = PTRACE_LISTEN;
	(void)ptrace((enum __ptrace_request)how, tid, NULL, tracee_delivery(status, signal));
}

/* What a stop is, and whose. */
enum stop_kind {
	STOP_INTERRUPT, /* an interrupt of capture */
	STOP_NOTICE, /* a trap without such an interrupt: a SIGCONT, or the end of a group-stop */
	STOP_SIGNAL, /* before the delivery of a signal */
	STOP_GROUP,  /* a stop signal has stopped the process */
	STOP_CALL,   /* the begin or the end of a resumed call */
	STOP_EVENT,  /* the thread has made a thread or a process */
};

static enum stop_kind kind_of(enum tracee_status status, enum thread_due due)
{
	switch (status) {
	case TRACEE_TRAP:
		return due != DUE_NOTHING ? STOP_INTERRUPT : STOP_NOTICE;
	case TRACEE_SIGNAL:
		return STOP_SIGNAL;
	case TRACEE_GROUP_STOP:
		return STOP_GROUP;
	case TRACEE_CALL:
		return STOP_CALL;
	case TRACEE_CLONE:
	case TRACEE_OTHER:
		return STOP_EVENT;
	/* reap.c handles these. */
	case TRACEE_DEAD:
	case TRACEE_EXEC:
	case TRACEE_EXIT:
		break;
	}
	assert(false);
	return STOP_EVENT;
}

/*
 * Returns true if capture may have caused the interruption of a system call. The causes are: an
 * interrupt of its own; the notice of a SIGCONT, which wakes every traced thread, stopped or not; a
 * signal, because a traced thread is woken even by signals that it ignores. A group-stop interrupts
 * calls without a tracer, too, and so does what follows it until the thread has left the kernel.
 */
static bool may_have_cut_a_call(const struct thread *th, enum stop_kind kind)
{
	return (kind == STOP_INTERRUPT || kind == STOP_NOTICE || kind == STOP_SIGNAL) &&
	       th->group_stop == GROUP_STOP_NONE;
}

/* Makes an interrupted call return what it would have returned without capture. */
static void repair_or_resume(struct thread *th, const struct arch_regs *raw,
			     const struct resume_stop *stop)
{
	struct capture_counters *counters = th->target->counters;
	long nr, result;

	if (!arch_interrupted_call(raw, &nr, &result))
		return;
	if (!arch_knows_arguments(raw)) {
		counters->unrepaired += syscall_restart_rule(nr, result) != RESTART_LEAVE;
		return;
	}
	if (resume_wait(&th->resumed, stop))
		counters->rewritten++;
	else if (repair_call(th->tid, raw, stop->signal))
		counters->rewritten++;
	else if (!state_is_cut(th->target) && !th->ended_resumed &&
		 resume_partial(&th->resumed, stop))
		counters->continued++;
	else
		repair_socket(stop->pid, stop->tid, raw);
}

/*
 * Interrupts the thread once more after a resumed call has ended by a stop that consumed an
 * interrupt. Another interrupt may still be under way, which cannot be seen. Its stop would show
 * the registers of the ended call, and capture would take the last part, which the kernel ended for
 * its own reason, for a part that capture cut short. So capture interrupts the thread in any case:
 * then one stop follows for certain, and ended_resumed tells it.
 */
static bool stop_again(const struct thread *th)
{
	return ptrace(PTRACE_INTERRUPT, th->tid, NULL, NULL) == 0;
}

static void handle_interrupted_call(struct thread *th, struct arch_regs *raw, enum stop_kind kind,
				    int signal, uint64_t now_ns)
{
	struct resume_stop stop = {
		.pid = th->target->pid,
		.tid = th->tid,
		.pagemap_fd = th->target->pagemap_fd,
		.regs = raw,
		.signal = signal,
		.now_ns = now_ns,
		.since_ns = call_timeouts_since(th, raw, now_ns),
		.at_call = kind == STOP_CALL,
		.interrupted = th->due != DUE_NOTHING,
		.goes_on = (kind == STOP_CALL || kind == STOP_INTERRUPT || kind == STOP_NOTICE) &&
			   !state_is_cut(th->target),
	};
	/* Capture does not interrupt a call that must not be disturbed, so no stop is awaited. */
	const bool was_resumed =
		th->resumed.state != RESUME_NONE && !resume_is_undisturbed(&th->resumed);
	const bool was_wait = was_resumed && th->resumed.same_call;
	bool cut_short;

	resume_stopped(&th->resumed, &stop, raw);
	/*
	 * If the end of a resumed wait consumed an interrupt, the registers show the call that the
	 * interrupt cut short. An interrupt at the begin of the wait is noted in
	 * resumed.interrupted.
	 */
	cut_short = was_wait && (stop.interrupted || th->resumed.interrupted);
	if (th->resumed.state == RESUME_NONE && (may_have_cut_a_call(th, kind) || cut_short) &&
	    !waits_has_failed(th, raw))
		repair_or_resume(th, raw, &stop);
	if (!ARCH_RESULT_RESTARTS && kind == STOP_SIGNAL && th->resumed.state == RESUME_NONE)
		waits_note_failure(th, raw, signal);
	th->ended_resumed = false;
	if (was_resumed && th->resumed.state == RESUME_NONE && stop.interrupted)
		th->ended_resumed = stop_again(th);
}

/*
 * Returns true if the thread was on a processor at the look, and kept that processor until the
 * stop. A running thread stops at once, unless it is in a long call. So if a thread has lost its
 * processor since the tick, it had none at the next tick.
 */
static bool kept_its_processor(const struct thread *th)
{
	return th->stop.known && th->look.known && th->look.mark.slices == th->stop.mark.slices;
}

/* Returns true if the thread went to sleep after the look, and slept until the interrupt. */
static bool slept_before_stop(const struct thread *th)
{
	return th->stop.waited && th->stop.known && th->pending.mark_known &&
	       th->stop.mark.slices != th->pending.mark.slices;
}

static enum activity_at_tick state_at_tick(const struct thread *th, const uint64_t *regs)
{
	const struct thread_pending *p = &th->pending;
	const struct activity_readings readings = {
		.due_ns = p->due_ns,
		.came_ns = p->came_ns,
		.first = th->look.mark,
		.was_blocked = p->was_blocked,
		.interrupt = p->mark,
		.interrupt_ns = p->mark_ns,
		.stop = th->stop.mark,
		.stop_ns = th->stop.ns,
		.stopped_waiting =
			th->stop.in_call || (p->was_blocked && p->blocked_at.sp == regs[ARCH_SP] &&
					     p->blocked_at.pc == regs[ARCH_PC]),
		.woken = th->stop.woken,
	};

	if (th->stop.known && th->look.known && p->mark_known)
		return activity_at_tick(&readings);
	/* Without marks, ready cannot be told from running. */
	return p->was_blocked && readings.stopped_waiting ? ACTIVITY_WAITED : ACTIVITY_RAN;
}

/* Returns the flags of the sample. */
static uint32_t flags_of_state(struct thread *th, enum activity_at_tick state)
{
	/* If it has lost its processor since, only the interrupt's own tick counts as running. */
	const uint64_t ticks =
		th->pending.later_ns != 0 && !kept_its_processor(th) ? 1 : th->pending.unaccounted;

	switch (balance_of_stop(th, state)) {
	case ACTIVITY_WAITED:
		return 0;
	case ACTIVITY_WAS_READY:
		balance_tell_ready(th, ticks);
		return SAMPLE_READY;
	case ACTIVITY_MAY_HAVE_RUN:
	case ACTIVITY_RAN:
		break;
	}
	balance_tell_running(th, ticks);
	return slept_before_stop(th) ? SAMPLE_RUNNING | SAMPLE_ASLEEP : SAMPLE_RUNNING;
}

/*
 * Sets th->stop.code and signal. An interrupt often reaches a thread that was continued with a
 * signal before the handler's first instruction. Then the handler has not run yet, and a sample of
 * it could lack the interrupted stack, if that is neither the handler's nor the thread's own: Go
 * preempts goroutines by signals.
 */
static void note_code(struct thread *th, const struct arch_regs *raw, enum stop_kind kind,
		      int signal)
{
	if (th->stop.signal == 0 || !arch_enters_handler(raw, th->stop.signal))
		arch_to_dwarf(raw, th->stop.code);
	th->stop.signal = kind == STOP_SIGNAL ? signal : 0;
}

static void note_pointer(struct thread *th, const struct arch_regs *raw)
{
	const uint64_t pointer = ARCH_POINTER_IN_REGS || th->stack.hints.own_end == 0
					 ? arch_thread_pointer(th->tid, raw)
					 : 0;

	record_pointer(th, pointer, th->pending.tick, th->pending.ns);
	stack_hints_set_own_end(&th->stack.hints, pointer);
}

static int take_sample(struct thread *th, const struct arch_regs *raw, struct record_sample **ret,
		       size_t *ret_size)
{
	const uint64_t *regs = th->stop.code;
	long nr, result;
	bool kept;
	int r;

	/*
	 * A thread with a processor to itself that stops in time, outside a call, has run: no mark
	 * is needed.
	 */
	th->stop.in_call = arch_in_call(raw);
	th->stop.woken = th->stop.waited = false;
	if (arch_interrupted_call(raw, &nr, &result)) {
		th->stop.waited = syscall_was_waiting(result);
		th->stop.woken = !th->stop.waited && syscall_waits(nr, raw);
	}
	if (th->stop.in_call || !th->look.own_processor || th->pending.later_ns != 0) {
		th->stop.known = activity_mark(&th->activity, &th->stop.mark);
		th->target->counters->without_schedstat += !th->stop.known;
	} else {
		th->stop.known = false;
	}
	kept = waits_keep(th, raw, regs);
	/* The reader has lost the thread's state since the interrupt. */
	if (!record_knows(th))
		return -ENOBUFS;
	note_pointer(th, raw);
	r = record_begin_sample(th, th->pending.tick, th->pending.ns, regs, ARCH_REGS_ALL, 0, ret,
				ret_size);
	if (r == 0 && kept)
		waits_keep_words(th, *ret);
	return r;
}

/*
 * The thread has lost its processor before it stopped, and did not stop at later ticks. Either it
 * waited for a processor most of that time, or it was blocked: in uninterruptible sleep it does not
 * stop.
 */
static void note_lost_processor(struct thread *th)
{
	const uint64_t late_ns = th->stop.ns - min_u64(th->stop.ns, th->pending.later_ns);

	if (th->stop.known && th->look.known &&
	    th->stop.mark.wait_ns - th->look.mark.wait_ns >= late_ns / 2) {
		record_ready(th, th->pending.later_tick, th->pending.later_ns);
		balance_tell_ready(th, th->pending.unaccounted - 1);
	} else {
		record_waiting(th, th->pending.later_tick, th->pending.later_ns);
	}
}

/* Completes the sample after the thread was continued. */
static void finish_sample(struct thread *th, int error, struct record_sample *record, size_t size)
{
	struct capture_counters *counters = th->target->counters;
	uint32_t flags;

	if (error != 0) {
		record_missed(th, record_missed_reason(th->target, error), th->pending.unaccounted,
			      th->pending.tick, th->pending.ns);
		return;
	}
	flags = flags_of_state(th, state_at_tick(th, record->regs));
	record->flags |= flags;
	record_commit_sample(th, size, flags == SAMPLE_READY);
	if (flags != 0 && th->pending.later_ns != 0 && !kept_its_processor(th))
		note_lost_processor(th);
	counters->captured++;
	counters->filled += th->pending.unaccounted - 1;
}

void stop_hold(struct thread *th, enum tracee_status status, int signal)
{
	th->held = (struct thread_held){.is = true, .status = status, .signal = signal};
}

void stop_note_seized(struct thread *th)
{
	if (th->group_stop == GROUP_STOP_IN)
		th->group_stop = GROUP_STOP_AFTER;
	th->dump = (struct thread_dump){.possible = true};
}

void stop_note_left_call(struct thread *th)
{
	if (th->group_stop == GROUP_STOP_AFTER)
		th->group_stop = GROUP_STOP_NONE;
}

/*
 * Ends the stop. In a crash the thread stays stopped (crash.h), unless it is stopped at the begin
 * of a resumed call: if capture detached from it there, the call would be interrupted as by a
 * signal.
 */
static void end_stop(struct thread *th, enum tracee_status status, int signal)
{
	const bool in_call = th->resumed.state == RESUME_INSIDE;

	/* With PTRACE_SYSCALL a thread in a resumed call stops at the call's begin and end. */
	if (th->target->crash.now.tid == 0 || (status == TRACEE_CALL && in_call))
		stop_continue(th->tid, status, signal,
			      th->resumed.state != RESUME_NONE ? PTRACE_SYSCALL : PTRACE_CONT);
	else
		stop_hold(th, status, signal);
}

/* Counts a stop that is over. */
static void count_stop(struct capture_counters *counters, enum stop_kind kind, uint64_t pause_ns)
{
	if (kind != STOP_INTERRUPT) {
		counters->event_stops++;
		return;
	}
	counters->stops++;
	counters_pause(counters, pause_ns);
}

/* Notes what a stop of this kind says about the stops and calls that follow. */
static void note_kind(struct thread *th, enum stop_kind kind, int signal)
{
	/* A thread that stops is not writing a core. */
	th->dump = (struct thread_dump){0};
	switch (kind) {
	case STOP_GROUP:
		th->group_stop = GROUP_STOP_IN;
		return;
	case STOP_INTERRUPT:
	case STOP_NOTICE:
		if (th->group_stop != GROUP_STOP_NONE)
			th->group_stop = GROUP_STOP_AFTER;
		return;
	case STOP_SIGNAL:
		if (tracee_signal_dumps(signal))
			th->dump = (struct thread_dump){.possible = true, .signal = signal};
		th->group_stop = GROUP_STOP_NONE;
		return;
	case STOP_CALL:
	case STOP_EVENT:
		th->group_stop = GROUP_STOP_NONE;
		return;
	}
}

/*
 * Reads the registers of the stopped thread, and completes them by the code around its pc, and by
 * what is known of its wait.
 */
static int get_regs(struct thread *th, struct arch_regs *ret)
{
	uint8_t code[ARCH_CODE_BYTES + 1];
	uint64_t regs[ARCH_REGS];
	int r = arch_get_regs(th->tid, ret);

	if (r < 0 || ARCH_CODE_BYTES == 0)
		return r;
	arch_to_dwarf(ret, regs);
	if (memory_read(th->target->pagemap_fd, NULL, (int32_t)th->tid,
			regs[ARCH_PC] - ARCH_CODE_BEFORE, code, ARCH_CODE_BYTES,
			0) != ARCH_CODE_BYTES)
		return 0;
	arch_find_call(ret, code);
	waits_find_argument(th, ret);
	return 0;
}

void stop_handle(struct thread *th, enum tracee_status status, int signal)
{
	struct traced_process *t = th->target;
	const struct capture_options *options = &t->capture->options;
	const uint64_t since_ns = options->now_ns();
	const enum stop_kind kind = kind_of(status, th->due);
	const bool owes_sample = th->due == DUE_SAMPLE;
	const bool owes_repair = may_have_cut_a_call(th, kind) ||
				 th->resumed.state != RESUME_NONE || th->ended_resumed;
	struct record_sample *record = NULL;
	struct arch_regs raw;
	size_t size = 0;
	int r = 0;

	th->stop.ns = since_ns;
	options->beat->touching = t->id;
	if (owes_sample || owes_repair)
		r = get_regs(th, &raw);
	if (r == 0 && owes_repair)
		handle_interrupted_call(th, &raw, kind, signal, since_ns);
	call_timeouts_watch(th);
	/* The arguments of the resumed call were read from the thread's memory. */
	if (th->resumed.state != RESUME_NONE)
		slow_memory_was_read(t, since_ns, 0);
	if (r == 0 && (owes_sample || owes_repair))
		note_code(th, &raw, kind, signal);
	else
		th->stop.signal = 0;
	if (r == 0 && owes_sample)
		r = take_sample(th, &raw, &record, &size);
	end_stop(th, status, signal);
	count_stop(t->counters, kind, options->now_ns() - since_ns);
	if (owes_sample)
		finish_sample(th, r, record, size);
	/* Every stop consumes a pending interrupt (kernel/signal.c). */
	tracees_stop_came(th, th->ended_resumed);
	sleepers_wake(th);
	/* Last, because the functions above need th->group_stop as earlier stops left it. */
	note_kind(th, kind, signal);
	tracees_assert(th);
	t->counters->cost_ns += options->now_ns() - since_ns;
	options->beat->touching = 0;
}
