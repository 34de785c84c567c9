#include "lib/capture/capture.h"

#include <stdlib.h>
#include <sys/ptrace.h>

#include "lib/base/procfs.h"
#include "lib/capture/proc/fuse.h"
#include "lib/capture/target.h"

int capture_new(const struct capture_options *options, struct capture **ret)
{
	struct capture *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return -ENOMEM;
	c->options = *options;
	c->waits_ns = REST_NEVER;
	table_init(&c->threads, 0);
	*ret = c;
	return 0;
}

void capture_free(struct capture *c)
{
	if (c == NULL)
		return;
	while (c->n_targets > 0)
		target_free(c->targets[c->n_targets - 1].target);
	free(c->targets);
	table_fini(&c->threads);
	free(c->by_index);
	free(c->free_indices);
	free(c);
}

/*
 * Is the process about to die? Capture has let go of it for that, perhaps, and whoever
 * attaches to it now keeps its status from its parent for a moment. The leader alone
 * may die: where other threads run on, or one of them is in execve(2). Flags of
 * linux/sched.h.
 */
static bool is_dying(const struct target *t)
{
	enum { FLAGS = 9, N_THREADS = 20 }; /* fields of proc_pid_stat(5) */
	const uint64_t exiting = 0x4, past_core_dump = 0x8, killed = 0x400;
	char text[PROCFS_TEXT_MAX];

	return proc_read_text(t->proc_fd, "stat", text, sizeof(text)) == PROC_READ &&
	       procfs_stat_number(text, N_THREADS) <= 1 &&
	       (procfs_stat_number(text, FLAGS) & (exiting | past_core_dump | killed)) != 0;
}

int capture_add(struct capture *c, uint32_t id, int32_t pid, int pidfd, struct capture_sink *sink,
		struct capture_counters *counters, uint64_t tick)
{
	struct target *t;
	int r;

	r = target_new(c, id, pid, pidfd, sink, counters, tick, &t);
	if (r < 0)
		return r;
	c->options.beat->touching = id;
	t->exit_stop = !fuse_is_mapped(t->proc_fd);
	r = is_dying(t) ? -ESRCH : target_scan(t);
	c->options.beat->touching = 0;
	if (t->n_threads == 0 && r == 0)
		r = -ESRCH;
	if (r >= 0 || t->held_up_ticks != 0)
		r = target_take_place(t);
	if (r < 0) {
		target_free(t);
		return r;
	}
	counters->threads = t->n_threads;
	return 0;
}

void target_end(struct target *t)
{
	if (t->phase == TARGET_ENDED)
		return;
	t->capture->n_leaving -= t->phase == TARGET_LEAVES;
	t->phase = TARGET_ENDED;
	t->counters->threads = 0;
	target_plan(t);
}

static bool tell_end(struct target *t)
{
	target_tell_gone(t, t->last_tick, target_now(t));
	return target_tell(t, RECORD_END, 0, t->last_tick, target_now(t));
}

void capture_free_ended(struct capture *c)
{
	for (size_t i = 0; i < c->n_targets;) {
		struct target *t = c->targets[i].target;

		if (c->targets[i].tick != 0 || t->phase != TARGET_ENDED || !tell_end(t)) {
			i++;
			continue;
		}
		c->options.event(c->options.ctx, t->id,
				 t->foreign ? CAPTURE_FOREIGN : CAPTURE_GONE);
		target_free(t);
	}
}

static void tick(struct capture *c, struct target *t)
{
	if (target_tick(t, c->tick.number, c->tick.begin_ns))
		while (target_tick_on(t)) {
			capture_reap_some(c);
			/* Stops are charged for as they are taken. */
			c->charged_ns = c->options.now_ns();
		}
	target_plan(t);
	/* No thread is left whose death would be told to us. */
	if (t->held_up_ticks == 0)
		target_end_if_gone(t);
}

void capture_tick(struct capture *c, const struct tick *now)
{
	c->tick = *now;
	c->now_ns = c->options.now_ns();
	capture_note_waits(c, c->now_ns);
	capture_end_waits(c, c->now_ns);
	c->charged_ns = c->now_ns;
	for (size_t i = 0; i < c->n_targets; i++)
		if (c->targets[i].tick <= now->number)
			tick(c, c->targets[i].target);
	capture_free_ended(c);
}

uint64_t capture_next_tick(const struct capture *c)
{
	uint64_t next = c->n_targets == 0 ? 0 : UINT64_MAX;

	for (size_t i = 0; i < c->n_targets; i++)
		next = min_u64(next, c->targets[i].tick);
	return next;
}

uint64_t capture_waits_ns(const struct capture *c)
{
	return c->waits_ns;
}

size_t capture_pending(const struct capture *c)
{
	return c->n_pending;
}

size_t capture_threads(const struct capture *c)
{
	return c->n_by_index - c->n_free;
}

/* Samples that are under way are missed; the stops are still to come. */
static void give_up_samples(struct target *t, enum missed_reason reason)
{
	/* Who is interrupted is awake. */
	for (struct thread *th = t->awake; th != NULL; th = th->next)
		thread_give_up(th, reason);
}

void capture_reset(struct capture *c, const struct capture_sink *sink)
{
	FOR_EACH_TARGET (t, c) {
		if (t->sink != sink)
			continue;
		give_up_samples(t, MISSED_NO_READER);
		target_reset(t);
	}
}

void capture_hint(struct capture *c, const struct capture_sink *sink, uint32_t target, uint32_t tid,
		  uint64_t sp, uint64_t top, uint64_t second)
{
	struct thread *th = capture_thread(c, tid);

	if (th == NULL || th->target->id != target || th->target->sink != sink)
		return;
	if (second != 0)
		thread_find_end(th);
	stack_hints_take(&th->hints, sp, top, second);
	/* More than the thread was given: it is given that at the next tick. */
	if (top > th->copied_top ||
	    (second != 0 && (th->copied_second == 0 || th->copied_second > second))) {
		thread_wake(th);
		th->stop_known = false;
	}
}

void capture_await_exec(struct capture *c, uint32_t target)
{
	FOR_EACH_TARGET (t, c)
		if (t->id == target && t->phase == TARGET_SAMPLED) {
			t->phase = TARGET_AWAITS_EXEC;
			target_plan(t);
		}
}

void capture_rate(struct capture *c, uint32_t target, uint32_t ticks, uint32_t of_ticks)
{
	FOR_EACH_TARGET (t, c) {
		if (t->id != target)
			continue;
		t->rate_ticks = ticks;
		t->rate_of = of_ticks;
	}
	capture_find_wakes(c);
}

void target_finish(struct target *t)
{
	give_up_samples(t, MISSED_NOT_STOPPED);
	/* All samples are in: the reader's chunk can end here. */
	(void)target_tell_tick(t, t->last_tick, t->last_ns);
	target_end(t);
}

bool capture_finish(struct capture *c)
{
	FOR_EACH_TARGET (t, c)
		target_finish(t);
	capture_free_ended(c);
	return c->n_targets == 0;
}
