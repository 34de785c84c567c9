#include "lib/capture/targets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/capture/attach.h"
#include "lib/capture/exec.h"
#include "lib/capture/perf/perf.h"
#include "lib/capture/proc/proc.h"
#include "lib/capture/record.h"
#include "lib/capture/sample.h"
#include "lib/capture/schedule.h"
#include "lib/capture/sleepers.h"
#include "lib/capture/state.h"
#include "lib/capture/tracees.h"
#include "lib/capture/watched_parts.h"

int targets_new(struct capture *c, uint32_t id, int32_t pid, int pidfd, struct capture_sink *sink,
		struct capture_counters *counters, uint64_t tick, struct traced_process **ret)
{
	struct traced_process *t = calloc(1, sizeof(*t));
	char path[32];
	int r;

	if (t == NULL)
		return -ENOMEM;
	*t = (struct traced_process){.capture = c,
				     .id = id,
				     .pid = pid,
				     .sink = sink,
				     .counters = counters,
				     .proc_fd = -1,
				     .task_fd = -1,
				     .pagemap_fd = -1,
				     .ticks.span.last = tick,
				     .schedule.rate_ticks = 1,
				     .schedule.rate_of = 1};
	(void)snprintf(path, sizeof(path), "/proc/%d", pid);
	r = proc_error(proc_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, &t->proc_fd));
	if (r < 0)
		goto fail;
	/*
	 * If the process still exists now, the directory belongs to it: its pid cannot have been
	 * given to another process before.
	 */
	if (syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) < 0 && errno == ESRCH) {
		r = -ESRCH;
		goto fail;
	}
	r = proc_error(proc_open(t->proc_fd, "task", O_PATH, &t->task_fd));
	if (r < 0)
		goto fail;
	r = exec_read_first(t);
	if (r < 0)
		goto fail;
	*ret = t;
	return 0;
fail:
	targets_free(t);
	return r;
}

struct traced_process *targets_find(const struct capture *c, int32_t pid)
{
	FOR_EACH_TARGET (t, c)
		if (t->pid == pid && t->phase != TRACED_ENDED)
			return t;
	return NULL;
}

void targets_end_if_gone(struct traced_process *t)
{
	if (t->threads.n == 0 && t->phase != TRACED_ENDED && !t->exec.held && attach_scan(t) <= 0 &&
	    t->scan.held_up_ticks == 0)
		targets_end(t, TRACED_END_GONE);
}

int targets_add(struct traced_process *t)
{
	struct capture *c = t->capture;
	struct scheduled *targets;

	targets = reallocarray(c->targets, c->n_targets + 1, sizeof(*targets));
	if (targets == NULL)
		return -ENOMEM;
	c->targets = targets;
	t->schedule.place = c->n_targets++;
	c->targets[t->schedule.place] = (struct scheduled){.pid = t->pid, .target = t};
	t->phase = TRACED_SAMPLED;
	schedule_all(c);
	return 0;
}

/* Removes the target from the list. The last target in the list takes its place. */
static void leave_place(struct traced_process *t)
{
	struct capture *c = t->capture;

	if (t->phase == TRACED_NEW)
		return;
	c->targets[t->schedule.place] = c->targets[--c->n_targets];
	c->targets[t->schedule.place].target->schedule.place = t->schedule.place;
	t->phase = TRACED_NEW;
	schedule_all(c);
}

void targets_free(struct traced_process *t)
{
	struct capture *c;

	if (t == NULL)
		return;
	c = t->capture;
	leave_place(t);
	tracees_forget_all(t);
	attach_end_pass(t);
	sleepers_delete_timer(t);
	close_fd(&t->proc_fd);
	close_fd(&t->task_fd);
	free(t->reader.gone);
	watched_parts_clear(t);
	free(t);
	if (c->n_targets == 0 && c->options.perf != NULL)
		perf_set_period(c->options.perf, 0);
}

void targets_end(struct traced_process *t, enum traced_end end)
{
	if (t->phase == TRACED_ENDED)
		return;
	t->capture->detaching.n -= t->phase == TRACED_DETACHING;
	t->phase = TRACED_ENDED;
	t->end = end;
	t->counters->threads = 0;
	schedule_target(t);
}

/* A process that is left in a crash gets no RECORD_END: capture attaches to it again. */
static bool write_end(struct traced_process *t)
{
	if (t->end == TRACED_END_CRASH)
		return true;
	record_exits(t, t->ticks.span.last, record_time(t));
	return record_event(t, RECORD_END, 0, t->ticks.span.last, record_time(t));
}

static void report_end(const struct traced_process *t)
{
	const struct capture_options *o = &t->capture->options;

	switch (t->end) {
	case TRACED_END_GONE:
		o->event(o->ctx, t->id, CAPTURE_GONE);
		return;
	case TRACED_END_FOREIGN:
		o->event(o->ctx, t->id, CAPTURE_FOREIGN);
		return;
	case TRACED_END_CRASH:
		o->crashed(o->ctx, t->id, &t->crash.now);
		return;
	}
}

void targets_free_ended(struct capture *c)
{
	/* targets_free() puts the last target, already examined, in the place of the freed one. */
	for (size_t i = c->n_targets; i-- > 0;) {
		struct traced_process *t = c->targets[i].target;

		if (c->targets[i].tick != 0 || t->phase != TRACED_ENDED || !write_end(t))
			continue;
		report_end(t);
		targets_free(t);
	}
}

void targets_finish(struct traced_process *t)
{
	tracees_give_up_samples(t, MISSED_NOT_STOPPED);
	/* All samples are written, so the reader can end its chunk here. */
	(void)record_tick(t, t->ticks.span.last, t->ticks.span.last_ns);
	targets_end(t, TRACED_END_GONE);
}
