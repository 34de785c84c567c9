#include "lib/capture/capture.h"

#include <stdlib.h>

#include "lib/base/procfs.h"
#include "lib/capture/attach.h"
#include "lib/capture/call_timeouts.h"
#include "lib/capture/crash.h"
#include "lib/capture/exec.h"
#include "lib/capture/held_exec.h"
#include "lib/capture/observe.h"
#include "lib/capture/proc/fuse.h"
#include "lib/capture/proc/proc.h"
#include "lib/capture/reap.h"
#include "lib/capture/record.h"
#include "lib/capture/schedule.h"
#include "lib/capture/sleepers.h"
#include "lib/capture/slow_memory.h"
#include "lib/capture/stack_hints.h"
#include "lib/capture/state.h"
#include "lib/capture/targets.h"
#include "lib/capture/thread_pointer.h"
#include "lib/capture/tick.h"
#include "lib/capture/tracees.h"
#include "lib/capture/waits.h"
#include "lib/capture/watched_parts.h"

int capture_new(const struct capture_options *options, struct capture **ret)
{
	struct capture *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return -ENOMEM;
	c->options = *options;
	c->timeout_ns = UINT64_MAX;
	table_init(&c->threads.indices, 0);
	*ret = c;
	return 0;
}

void capture_free(struct capture *c)
{
	if (c == NULL)
		return;
	while (c->n_targets > 0)
		targets_free(c->targets[c->n_targets - 1].target);
	free(c->targets);
	table_fini(&c->threads.indices);
	free(c->threads.by_index);
	free(c->threads.free_indices);
	free(c);
}

/*
 * Returns -ESRCH if the process is about to die, perhaps because capture has detached from its
 * leader for that. Attaching to it now would delay the status that its parent gets. The leader
 * alone may die while other threads run on, or while one of them is in execve(2). The flags are
 * those of linux/sched.h. Returns -ECANCELED if the parent runs its handler of a crash signal: the
 * process may be its crash reporter. Otherwise returns 0.
 */
static int check_moment(struct traced_process *t)
{
	enum { PARENT = 4, FLAGS = 9, N_THREADS = 20 }; /* fields of proc_pid_stat(5) */
	const uint64_t exiting = 0x4, past_core_dump = 0x8, killed = 0x400;
	char text[PROCFS_TEXT_MAX];

	if (proc_read_text(t->proc_fd, "stat", text, sizeof(text)) != PROC_READ)
		return 0;
	if (procfs_stat_number(text, N_THREADS) <= 1 &&
	    (procfs_stat_number(text, FLAGS) & (exiting | past_core_dump | killed)) != 0)
		return -ESRCH;
	return crash_was_left(t->capture, (int32_t)procfs_stat_number(text, PARENT)) ? -ECANCELED
										     : 0;
}

int capture_add(struct capture *c, uint32_t id, int32_t pid, int pidfd, struct capture_sink *sink,
		struct capture_counters *counters, uint64_t tick)
{
	struct traced_process *t;
	int r;

	if (c->options.perf != NULL)
		observe_start(c);
	r = targets_new(c, id, pid, pidfd, sink, counters, tick, &t);
	if (r < 0)
		return r;
	c->options.beat->touching = id;
	t->exit_stop = !fuse_is_mapped(t->proc_fd);
	crash_is_target_again(c, pid);
	r = check_moment(t);
	if (r == 0)
		r = attach_scan(t);
	c->options.beat->touching = 0;
	if (t->threads.n == 0 && r == 0)
		r = -ESRCH;
	if (r >= 0 || t->scan.held_up_ticks != 0)
		r = targets_add(t);
	if (r < 0) {
		targets_free(t);
		return r;
	}
	counters->threads = t->threads.n;
	/* A followed child that becomes a target while it is held. */
	held_exec_is_target(t);
	return 0;
}

static void run_tick(struct capture *c, struct traced_process *t)
{
	if (t->exec.held)
		return;
	if (tick_begin(t, c->tick.number, c->tick.begin_ns))
		while (tick_continue(t) && !c->detaching.at_once) {
			reap_some(c);
			/* stop_handle charges the target for its stops. */
			c->charged_ns = c->options.now_ns();
		}
	schedule_target(t);
	/* Without a thread, no death will be reported. */
	if (t->scan.held_up_ticks == 0)
		targets_end_if_gone(t);
}

void capture_tick(struct capture *c, const struct tick *now)
{
	if (c->detaching.at_once)
		return;
	c->tick = *now;
	c->now_ns = c->options.now_ns();
	if (c->options.perf != NULL)
		observe_begin_tick(c);
	slow_memory_note_switches(c, c->now_ns);
	call_timeouts_end_due(c, c->now_ns);
	c->charged_ns = c->now_ns;
	for (size_t i = 0; i < c->n_targets && !c->detaching.at_once; i++)
		if (c->targets[i].tick <= c->tick.number)
			run_tick(c, c->targets[i].target);
	targets_free_ended(c);
}

uint64_t capture_next_tick(const struct capture *c)
{
	uint64_t next = c->n_targets == 0 ? 0 : UINT64_MAX;

	for (size_t i = 0; i < c->n_targets; i++)
		next = min_u64(next, c->targets[i].tick);
	return c->options.perf == NULL || next == 0 || next == UINT64_MAX ? next
									  : observe_after(c, next);
}

uint64_t capture_timeout_ns(const struct capture *c)
{
	return c->timeout_ns;
}

size_t capture_pending(const struct capture *c)
{
	return c->n_pending;
}

size_t capture_threads(const struct capture *c)
{
	return state_threads(c);
}

void capture_reset(struct capture *c, const struct capture_sink *sink)
{
	FOR_EACH_TARGET (t, c) {
		if (t->sink != sink)
			continue;
		tracees_give_up_samples(t, MISSED_NO_READER);
		record_request_reset(t);
		watched_parts_clear(t);
	}
}

/* Returns the thread of a message from the sink's reader; NULL: it writes to another sink. */
static struct thread *find_thread(struct capture *c, const struct capture_sink *sink,
				  uint32_t target, uint32_t tid)
{
	struct thread *th = tracees_find(c, tid);

	return th != NULL && th->target->id == target && th->target->sink == sink ? th : NULL;
}

void capture_hint(struct capture *c, const struct capture_sink *sink, uint32_t target, uint32_t tid,
		  uint64_t sp, uint64_t top, uint64_t second)
{
	struct thread *th = find_thread(c, sink, target, tid);

	if (th == NULL)
		return;
	if (second != 0)
		thread_pointer_find_stack_end(th);
	stack_hints_take(&th->stack.hints, sp, top, second);
	/* The hint needs more than the last sample had: sample again at the next tick. */
	if (top > th->stack.copied_top ||
	    (second != 0 && (th->stack.copied_second == 0 || th->stack.copied_second > second))) {
		sleepers_wake(th);
		record_forget_sample(th);
	}
}

void capture_want_registers(struct capture *c, const struct capture_sink *sink, uint32_t target,
			    uint32_t tid, uint64_t sp, uint64_t pc)
{
	struct thread *th = find_thread(c, sink, target, tid);

	if (th != NULL)
		waits_request(th, sp, pc);
}

/* Returns the target of this id, or NULL: it has ended, and capture has forgotten it. */
static struct traced_process *find_target(struct capture *c, uint32_t id)
{
	FOR_EACH_TARGET (t, c)
		if (t->id == id)
			return t;
	return NULL;
}

void capture_watch(struct capture *c, const struct capture_sink *sink, uint32_t target,
		   uint32_t list, const struct watch_part *parts, size_t n)
{
	struct traced_process *t = find_target(c, target);

	if (t != NULL && t->sink == sink)
		watched_parts_set(t, list, parts, n);
}

void capture_await_exec(struct capture *c, uint32_t target)
{
	struct traced_process *t = find_target(c, target);

	if (t == NULL || t->phase != TRACED_SAMPLED)
		return;
	t->phase = TRACED_AWAITS_EXEC;
	schedule_target(t);
}

void capture_set_user(struct capture *c, uint32_t target, uint32_t uid, uint32_t files_uid)
{
	struct traced_process *t = find_target(c, target);

	if (t == NULL)
		return;
	t->exec.uid = uid;
	t->exec.files_uid = files_uid;
	t->exec.user_known = true;
	if (!exec_compare_rights(t))
		c->options.event(c->options.ctx, t->id, CAPTURE_OTHER_RIGHTS);
}

void capture_ignore_crashes(struct capture *c, uint32_t target, uint32_t signals)
{
	struct traced_process *t = find_target(c, target);

	if (t != NULL)
		t->crash.ignored = signals;
}

void capture_rate(struct capture *c, uint32_t target, uint32_t ticks, uint32_t of_ticks)
{
	struct traced_process *t = find_target(c, target);

	if (t != NULL) {
		t->schedule.rate_ticks = ticks;
		t->schedule.rate_of = of_ticks;
	}
	schedule_all(c);
}

void capture_withhold(struct capture *c, uint32_t target, bool is_withheld)
{
	struct traced_process *t = find_target(c, target);

	if (t == NULL || t->is_withheld == is_withheld)
		return;
	t->is_withheld = is_withheld;
	tracees_give_up_samples(t, MISSED_BUDGET);
}

void capture_want_thread_pointers(struct capture *c, uint32_t target)
{
	struct traced_process *t = find_target(c, target);

	if (t != NULL)
		t->reader.wants_thread_pointers = true;
}

int capture_realtime_priority(const struct capture *c)
{
	return c->realtime.highest;
}
