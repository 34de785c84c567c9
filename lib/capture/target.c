#include "lib/capture/target.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "lib/base/array.h"
#include "lib/capture/proc/memory.h"

/* What a thread's first sample is reckoned to take of the ring. */
#define FIRST_SAMPLE_BYTES 32768

/*
 * Clone and exec keep the table true; a thread's end is told by wait anyway.
 * SYSGOOD tells the stops at calls, which we seldom ask for, from a SIGTRAP.
 */
#define OPTIONS (PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD)

unsigned long capture_base_options(const struct capture *c)
{
	return c->options.born == NULL ? OPTIONS
				       : OPTIONS | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK;
}

/*
 * A leader that died while we trace it would have ended for a pidfd of its
 * parent's before wait(2) gives the status, which is when we have reaped it
 * (kernel/exit.c, do_notify_parent and wait_consider_task).
 */
unsigned long target_options(const struct target *t, uint32_t tid)
{
	const unsigned long options = capture_base_options(t->capture);

	return t->exit_stop && tid == (uint32_t)t->pid ? options | PTRACE_O_TRACEEXIT : options;
}

struct thread *capture_thread(struct capture *c, uint32_t tid)
{
	uint32_t index;

	if (!table_get(&c->threads, tid, &index))
		return NULL;
	return c->by_index[index];
}

/*
 * Signal 0 is not sent. ESRCH means that the process has no such thread, and
 * any other error that it has one: mostly EPERM, since we may not signal
 * another user's (tgkill(2)).
 */
bool target_has(const struct target *t, uint32_t tid)
{
	return syscall(SYS_tgkill, t->pid, tid, 0) == 0 || errno != ESRCH;
}

static int take_index(struct capture *c, uint32_t *ret)
{
	struct thread **by_index;
	uint32_t *free_indices;
	size_t n;

	if (c->n_free > 0) {
		*ret = c->free_indices[--c->n_free];
		return 0;
	}
	if (c->n_by_index >= CAPTURE_THREADS_MAX)
		return -EMFILE;
	n = c->n_by_index + 1;
	if ((n & (n - 1)) == 0) {
		by_index = realloc(c->by_index, 2 * n * sizeof(*by_index));
		if (by_index == NULL)
			return -ENOMEM;
		c->by_index = by_index;
		free_indices = realloc(c->free_indices, 2 * n * sizeof(*free_indices));
		if (free_indices == NULL)
			return -ENOMEM;
		c->free_indices = free_indices;
	}
	*ret = (uint32_t)c->n_by_index++;
	return 0;
}

int target_adopt(struct target *t, uint32_t tid)
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
	th->last_size = FIRST_SAMPLE_BYTES;
	/* An exec was in the way of the first scan: this is the rest. */
	if (t->phase == TARGET_APART || t->held_up_ticks > 0)
		th->life = THREAD_AWAITS_TURN;
	r = activity_open(&th->activity, t->proc_fd, tid);
	if (r < 0)
		goto fail;
	/* The leader's would do, but it may have exited before the others. */
	r = t->pagemap_fd < 0 ? memory_open(t->proc_fd, tid, &t->pagemap_fd) : 0;
	if (r < 0 && r != -ESRCH)
		goto fail;
	r = take_index(c, &index);
	if (r < 0)
		goto fail;
	r = table_put(&c->threads, tid, index);
	if (r < 0) {
		c->free_indices[c->n_free++] = index;
		goto fail;
	}
	c->by_index[index] = th;
	thread_link(th);
	return 0;
fail:
	activity_close(&th->activity);
	free(th);
	return r;
}

void thread_set_pending(struct thread *th, uint64_t tick, uint64_t time_ns)
{
	struct capture *c = th->target->capture;

	th->due = DUE_SAMPLE;
	th->pending_tick = tick;
	th->pending_ns = time_ns;
	th->promised = th->last_size;
	th->target->sink->promised += th->promised;
	th->prev_pending = NULL;
	th->next_pending = c->pending;
	if (c->pending != NULL)
		c->pending->prev_pending = th;
	c->pending = th;
	c->n_pending++;
}

void thread_clear_pending(struct thread *th)
{
	struct capture_sink *sink = th->target->sink;
	struct capture *c = th->target->capture;

	if (th->due != DUE_SAMPLE)
		return;
	th->due = rest_is_alone(&th->rest) ? DUE_NOTHING : DUE_STOP;
	th->unaccounted = 0;
	c->n_pending--;
	/* The sink may be a new one. */
	sink->promised -= min_size(sink->promised, th->promised);
	if (th->next_pending != NULL)
		th->next_pending->prev_pending = th->prev_pending;
	if (th->prev_pending != NULL)
		th->prev_pending->next_pending = th->next_pending;
	else
		c->pending = th->next_pending;
}

void thread_give_up(struct thread *th, enum missed_reason reason)
{
	if (th->due == DUE_SAMPLE)
		th->target->counters->missed[reason] += th->unaccounted;
	thread_clear_pending(th);
}

void thread_begin_again(struct thread *th)
{
	thread_give_up(th, MISSED_NOT_STOPPED);
	th->rest.state = REST_NONE;
	th->due = DUE_NOTHING;
	th->ended_rest = false;
	if (th->group_stop == GROUP_STOP_IN)
		th->group_stop = GROUP_STOP_AFTER;
	th->may_dump = true;
}

static void forget(struct thread *th, enum missed_reason reason)
{
	struct target *t = th->target;
	struct capture *c = t->capture;
	uint32_t index;

	thread_give_up(th, reason);
	thread_forget_priority(th);
	if (table_get(&c->threads, th->tid, &index)) {
		(void)table_remove(&c->threads, th->tid);
		c->free_indices[c->n_free++] = index;
	}
	thread_unlink(th);
	activity_close(&th->activity);
	stack_hints_fini(&th->hints);
	free(th);
}

void target_reset(struct target *t)
{
	t->needs_reset = true;
	target_hasten(t);
}

/* Notes that the reader has to be told of a thread's end. */
static void note_gone(struct target *t, uint32_t tid)
{
	if (array_grow(t->gone, t->n_gone, t->cap_gone) < 0) {
		/* It is told everything anew instead. */
		target_reset(t);
		return;
	}
	t->gone[t->n_gone++] = tid;
	target_hasten(t);
}

void thread_remove(struct thread *th, enum missed_reason reason)
{
	if (th->announced && th->life != THREAD_DEAD)
		note_gone(th->target, th->tid);
	forget(th, reason);
}

void target_forget_threads(struct target *t)
{
	while (t->asleep != NULL)
		forget(t->asleep, MISSED_EXITED);
	while (t->awake != NULL)
		forget(t->awake, MISSED_EXITED);
	close_fd(&t->pagemap_fd);
}

/* A leader that has given its memory back has none. */
static enum proc_outcome read_program(const struct target *t, struct target_program *ret)
{
	enum proc_outcome outcome;

	*ret = (struct target_program){0};
	outcome = proc_read(t->proc_fd, "auxv", ret->words, sizeof(ret->words), &ret->size);
	/* AT_NULL: the kernel has not filled it in (fs/binfmt_elf.c). */
	if (ret->words[0] == 0)
		ret->size = 0;
	return outcome;
}

static enum proc_answer runs_another_program(struct target *t)
{
	struct target_program now;

	if (read_program(t, &now) == PROC_LACK)
		return PROC_UNKNOWN;
	if (now.size == 0)
		return PROC_NO;
	/* The exec that it began with has been told of. */
	if (!t->program_known) {
		t->program = now;
		t->program_known = true;
	}
	return now.size == t->program.size &&
			       memcmp(now.words, t->program.words, sizeof(now.words)) == 0
		       ? PROC_NO
		       : PROC_YES;
}

static enum proc_answer has_executed(struct target *t)
{
	const enum proc_answer runs_another = runs_another_program(t);

	return runs_another != PROC_NO ? runs_another : target_lost_leader(t);
}

void target_look_for_exec(struct target *t)
{
	/* The caller is told of nothing before its first scan is over. */
	switch (t->phase != TARGET_APART ? has_executed(t) : PROC_UNKNOWN) {
	case PROC_YES:
		target_executed(t);
		return;
	case PROC_UNKNOWN:
		t->doubt = true;
		return;
	case PROC_NO:
		return;
	}
}

bool target_leader_dies(struct target *t)
{
	t->leader_dies = t->leader_dies && runs_another_program(t) != PROC_YES;
	return t->leader_dies;
}

/*
 * The auxiliary vector is made of words of the program's size. Its first type
 * is a small number: read as 64 bits its upper half is 0, and in a vector of
 * 32 bits the value stands there, that of AT_SYSINFO or AT_HWCAP
 * (create_elf_tables() in fs/binfmt_elf.c).
 */
static bool is_32_bit(const struct target_program *p)
{
	return p->size >= sizeof(p->words[0]) && p->words[0] >> 32 != 0;
}

int target_new(struct capture *c, uint32_t id, int32_t pid, int pidfd, struct capture_sink *sink,
	       struct capture_counters *counters, uint64_t tick, struct target **ret)
{
	struct target *t = calloc(1, sizeof(*t));
	char path[32];
	int r;

	if (t == NULL)
		return -ENOMEM;
	*t = (struct target){.capture = c,
			     .id = id,
			     .pid = pid,
			     .sink = sink,
			     .counters = counters,
			     .proc_fd = -1,
			     .task_fd = -1,
			     .pagemap_fd = -1,
			     .last_tick = tick,
			     .rate_ticks = 1,
			     .rate_of = 1};
	(void)snprintf(path, sizeof(path), "/proc/%d", pid);
	r = proc_error(proc_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, &t->proc_fd));
	if (r < 0)
		goto fail;
	/*
	 * If the process is still there now, the directory is its own: the pid
	 * cannot have been given to another before it was gone.
	 */
	if (syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) < 0 && errno == ESRCH) {
		r = -ESRCH;
		goto fail;
	}
	r = proc_error(proc_open(t->proc_fd, "task", O_PATH, &t->task_fd));
	if (r < 0)
		goto fail;
	/* A leader that is dead has none: any program is another one. */
	t->program_known = read_program(t, &t->program) != PROC_LACK;
	/*
	 * The file is its owner's, as are those that each sample takes: who may
	 * not read it seizes no thread.
	 */
	if (!t->program_known && errno == EACCES) {
		r = -EACCES;
		goto fail;
	}
	if (is_32_bit(&t->program)) {
		r = -ENOEXEC;
		goto fail;
	}
	*ret = t;
	return 0;
fail:
	target_free(t);
	return r;
}

void target_executed(struct target *t)
{
	target_forget_threads(t);
	t->program_known = read_program(t, &t->program) == PROC_READ && t->program.size > 0;
	t->leader_dies = false;
	if (t->phase == TARGET_AWAITS_EXEC)
		t->phase = TARGET_SAMPLED;
	t->n_gone = 0;
	/* The leader may not be attached to yet. */
	t->scan_tick = 0;
	(void)target_tell(t, RECORD_EXEC, (uint32_t)t->pid, t->last_tick, target_now(t));
	t->capture->options.event(t->capture->options.ctx, t->id, CAPTURE_EXEC);
}

void target_end_if_gone(struct target *t)
{
	if (t->n_threads == 0 && t->phase != TARGET_ENDED && target_scan(t) <= 0 &&
	    t->held_up_ticks == 0)
		target_end(t);
}

/*
 * Never before the last tick's samples. Samples have the time at which their
 * period begins, and capture looks later in it. So an event between the begin
 * of a period and its look gets the time of the begin, which is no later than
 * the time of the samples that follow.
 */
uint64_t target_now(const struct target *t)
{
	const struct tick *tick = &t->capture->tick;
	const uint64_t now_ns = t->capture->options.now_ns();

	/* Before the first tick there is no period. */
	if (now_ns < tick->begin_ns + tick->period_ns || tick->period_ns == 0)
		return max_u64(now_ns, t->last_ns);
	return now_ns - (now_ns - tick->begin_ns) % tick->period_ns;
}

void target_beat(const struct target *t)
{
	const struct capture_options *options = &t->capture->options;

	options->beat->time_ns = options->now_ns();
}

int target_take_place(struct target *t)
{
	struct capture *c = t->capture;
	struct planned *targets;

	targets = reallocarray(c->targets, c->n_targets + 1, sizeof(*targets));
	if (targets == NULL)
		return -ENOMEM;
	c->targets = targets;
	t->place = c->n_targets++;
	c->targets[t->place] = (struct planned){.target = t};
	t->phase = TARGET_SAMPLED;
	capture_find_wakes(c);
	return 0;
}

/* The last one takes it. */
static void leave_place(struct target *t)
{
	struct capture *c = t->capture;

	if (t->phase == TARGET_APART)
		return;
	c->targets[t->place] = c->targets[--c->n_targets];
	c->targets[t->place].target->place = t->place;
	t->phase = TARGET_APART;
	capture_find_wakes(c);
}

void target_free(struct target *t)
{
	if (t == NULL)
		return;
	leave_place(t);
	target_forget_threads(t);
	target_end_pass(t);
	close_fd(&t->proc_fd);
	close_fd(&t->task_fd);
	free(t->gone);
	free(t);
}
