#include "lib/capture/tracees.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/capture/options.h"
#include "lib/capture/priority.h"
#include "lib/capture/proc/memory.h"
#include "lib/capture/record.h"
#include "lib/capture/restart/resume.h"
#include "lib/capture/schedule.h"
#include "lib/capture/sleepers.h"
#include "lib/capture/stack_hints.h"
#include "lib/capture/state.h"

/*
 * With these options the kernel reports new threads and execs, so that the table stays correct;
 * waitpid(2) reports deaths anyway. SYSGOOD makes stops at system calls, which are rare, different
 * from a SIGTRAP.
 */
#define OPTIONS (PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD)

unsigned long tracees_base_options(const struct capture *c)
{
	return c->options.born == NULL ? OPTIONS
				       : OPTIONS | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK;
}

/*
 * A leader also stops before it dies, so that capture can detach from it. Otherwise the parent's
 * pidfd of a dying leader would become readable before the parent's wait(2) gets the status, which
 * is only after capture has reaped the leader (kernel/exit.c, do_notify_parent and
 * wait_consider_task).
 */
unsigned long tracees_options(const struct traced_process *t, uint32_t tid)
{
	const unsigned long options = tracees_base_options(t->capture);

	return t->exit_stop && tid == (uint32_t)t->pid ? options | PTRACE_O_TRACEEXIT : options;
}

struct thread *tracees_find(struct capture *c, uint32_t tid)
{
	uint32_t index;

	if (!table_get(&c->threads.indices, tid, &index))
		return NULL;
	return c->threads.by_index[index];
}

/*
 * tgkill(2) with signal 0 sends no signal. ESRCH means that the process has no such thread. Any
 * other error means that it has one; mostly EPERM, because capture may not signal another user's
 * processes.
 */
bool tracees_exists(const struct traced_process *t, uint32_t tid)
{
	return syscall(SYS_tgkill, t->pid, tid, 0) == 0 || errno != ESRCH;
}

static int take_index(struct capture *c, uint32_t *ret)
{
	struct thread **by_index;
	uint32_t *free_indices;
	size_t n;

	if (c->threads.n_free > 0) {
		*ret = c->threads.free_indices[--c->threads.n_free];
		return 0;
	}
	if (c->threads.n_by_index >= CAPTURE_THREADS_MAX)
		return -EMFILE;
	n = c->threads.n_by_index + 1;
	if ((n & (n - 1)) == 0) {
		by_index = realloc(c->threads.by_index, 2 * n * sizeof(*by_index));
		if (by_index == NULL)
			return -ENOMEM;
		c->threads.by_index = by_index;
		free_indices = realloc(c->threads.free_indices, 2 * n * sizeof(*free_indices));
		if (free_indices == NULL)
			return -ENOMEM;
		c->threads.free_indices = free_indices;
	}
	*ret = (uint32_t)c->threads.n_by_index++;
	return 0;
}

int tracees_adopt(struct traced_process *t, uint32_t tid)
{
	struct capture *c = t->capture;
	struct thread *th;
	uint32_t index;
	int r;

	th = calloc(1, sizeof(*th));
	if (th == NULL)
		return -ENOMEM;
	th->target = t;
	th->tid = tid;
	record_begin_thread(th);
	/*
	 * The thread existed before capture attached, also if this is the rest of a first scan that
	 * an exec held up.
	 */
	if (t->phase != TRACED_NEW && t->scan.held_up_ticks == 0)
		tracees_set_life(th, THREAD_NEW);
	r = activity_open(&th->activity, t->proc_fd, tid);
	/* A thread that is not traced can have had a sample, and be dead now. */
	if (r < 0 && (r != -ESRCH || t->capture->options.perf == NULL))
		goto fail;
	/*
	 * Any thread's pagemap shows the process's memory. The leader's is not used, because the
	 * leader may have exited before the other threads.
	 */
	r = t->pagemap_fd < 0 ? memory_open(t->proc_fd, tid, &t->pagemap_fd) : 0;
	if (r < 0 && r != -ESRCH)
		goto fail;
	r = take_index(c, &index);
	if (r < 0)
		goto fail;
	r = table_put(&c->threads.indices, tid, index);
	if (r < 0) {
		c->threads.free_indices[c->threads.n_free++] = index;
		goto fail;
	}
	c->threads.by_index[index] = th;
	sleepers_link(th);
	return 0;
fail:
	activity_close(&th->activity);
	free(th);
	return r;
}

void tracees_set_pending(struct thread *th, uint64_t tick, uint64_t time_ns)
{
	struct capture *c = th->target->capture;

	th->due = DUE_SAMPLE;
	th->pending.tick = tick;
	th->pending.ns = time_ns;
	th->pending.promised = th->stack.last_size;
	th->target->sink->promised += th->pending.promised;
	th->prev_pending = NULL;
	th->next_pending = c->pending;
	if (c->pending != NULL)
		c->pending->prev_pending = th;
	c->pending = th;
	c->n_pending++;
}

void tracees_clear_pending(struct thread *th)
{
	struct capture_sink *sink = th->target->sink;
	struct capture *c = th->target->capture;

	if (th->due != DUE_SAMPLE)
		return;
	th->due = resume_is_undisturbed(&th->resumed) ? DUE_NOTHING : DUE_STOP;
	th->pending.unaccounted = 0;
	c->n_pending--;
	/* The subtraction is limited, because the sink may have been reset. */
	sink->promised -= min_size(sink->promised, th->pending.promised);
	if (th->next_pending != NULL)
		th->next_pending->prev_pending = th->prev_pending;
	if (th->prev_pending != NULL)
		th->prev_pending->next_pending = th->next_pending;
	else
		c->pending = th->next_pending;
}

void tracees_expect_stop(struct thread *th)
{
	if (th->due == DUE_NOTHING)
		th->due = DUE_STOP;
}

void tracees_stop_came(struct thread *th, bool another)
{
	tracees_clear_pending(th);
	th->due = another ? DUE_STOP : DUE_NOTHING;
}

void tracees_set_life(struct thread *th, enum thread_life life)
{
	assert(th->life <= life);
	th->life = life;
}

void tracees_assert(const struct thread *th)
{
	/* Only an awake thread is interrupted for a sample, and it counts at least its own tick. */
	assert(th->due != DUE_SAMPLE || (!th->asleep && th->pending.unaccounted > 0));
	/* A stop follows each resumed call that consumed an interrupt. */
	assert(!th->ended_resumed || th->due == DUE_STOP);
	/* A dead leader has no stop. */
	assert(th->life != THREAD_DEAD || th->due == DUE_NOTHING);
	/* Only a crash holds threads. */
	assert(!th->held.is || th->target->crash.now.tid != 0);
}

/* Clears the pending sample and counts it as missed. */
static void give_up_sample(struct thread *th, enum missed_reason reason)
{
	if (th->due == DUE_SAMPLE)
		th->target->counters->missed[reason] += th->pending.unaccounted;
	tracees_clear_pending(th);
}

void tracees_begin_again(struct thread *th)
{
	give_up_sample(th, MISSED_NOT_STOPPED);
	th->resumed.state = RESUME_NONE;
	th->due = DUE_NOTHING;
	th->ended_resumed = false;
}

/* Counts the samples that no look has counted. */
static void give_up_observed(struct thread *th)
{
	struct capture_counters *counters = th->target->counters;
	const uint64_t kept = th->observed.kept != NULL;

	if (th->observed.taken + kept == 0)
		return;
	counters->expected += th->observed.taken + kept;
	counters->captured += th->observed.taken;
	counters->missed[MISSED_EXITED] += kept;
	free(th->observed.kept);
}

static void forget(struct thread *th, enum missed_reason reason)
{
	struct traced_process *t = th->target;
	struct capture *c = t->capture;
	uint32_t index;

	give_up_sample(th, reason);
	give_up_observed(th);
	priority_forget(th);
	if (table_get(&c->threads.indices, th->tid, &index)) {
		(void)table_remove(&c->threads.indices, th->tid);
		c->threads.free_indices[c->threads.n_free++] = index;
	}
	sleepers_unlink(th);
	activity_close(&th->activity);
	stack_hints_fini(&th->stack.hints);
	free(th);
}

void tracees_remove(struct thread *th, enum missed_reason reason)
{
	if (th->reader.announced && th->life != THREAD_DEAD)
		record_exit_later(th->target, th->tid);
	forget(th, reason);
}

static void forget_list(struct thread *th)
{
	for (struct thread *next; th != NULL; th = next) {
		next = th->next;
		forget(th, MISSED_EXITED);
	}
}

void tracees_forget_all(struct traced_process *t)
{
	forget_list(t->threads.asleep);
	forget_list(t->threads.awake);
	close_fd(&t->pagemap_fd);
}

void tracees_give_up_samples(struct traced_process *t, enum missed_reason reason)
{
	/* Only awake threads can have an interrupt under way. */
	for (struct thread *th = t->threads.awake; th != NULL; th = th->next)
		give_up_sample(th, reason);
}
