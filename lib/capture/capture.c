#include "lib/capture/capture.h"

#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lib/capture/snapshot.h"
#include "lib/capture/repair.h"
#include "lib/capture/target.h"

/*
 * Wait statuses taken at once, 10 to 20 us each: half a tick. A process that
 * starts threads without end must not keep us from ticks and heartbeats.
 */
#define REAP_MAX 256

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
	while (c->targets != NULL) {
		struct target *t = c->targets;

		c->targets = t->next;
		target_free(t);
	}
	table_fini(&c->threads);
	free(c->by_index);
	free(c->free_indices);
	free(c);
}

int capture_add(struct capture *c, uint32_t id, int32_t pid, int pidfd,
		struct capture_sink *sink, struct capture_counters *counters,
		uint64_t tick)
{
	struct target *t;
	int r;

	r = target_new(c, id, pid, pidfd, sink, counters, tick, &t);
	if (r < 0)
		return r;
	c->options.beat->touching = id;
	r = target_scan(t);
	c->options.beat->touching = 0;
	if ((r < 0 || t->n_threads == 0) && t->held_up_ticks == 0) {
		target_free(t);
		return r < 0 ? r : -ESRCH;
	}
	t->added = true;
	t->next = c->targets;
	c->targets = t;
	counters->threads = t->n_threads;
	return 0;
}

/* Tells the reader, and the caller; the target waits to be freed. */
static void end_target(struct target *t)
{
	if (t->ended)
		return;
	t->ended = true;
	t->counters->threads = 0;
}

static bool tell_end(struct target *t)
{
	target_tell_gone(t, t->last_tick, target_now(t));
	return target_tell(t, RECORD_END, 0, t->last_tick, target_now(t));
}

static void free_ended(struct capture *c)
{
	for (struct target **at = &c->targets; *at != NULL;) {
		struct target *t = *at;

		if (!t->ended || !tell_end(t)) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		c->options.event(c->options.ctx, t->id,
				 t->foreign ? CAPTURE_FOREIGN : CAPTURE_GONE);
		target_free(t);
	}
}

static struct target *target_of(struct capture *c, uint32_t pid)
{
	for (struct target *t = c->targets; t != NULL; t = t->next)
		if ((uint32_t)t->pid == pid && !t->ended)
			return t;
	return NULL;
}

/*
 * The target that a stopped thread belongs to, or NULL. Signal 0 is not sent;
 * ESRCH means that the process has no such thread, and any other error that it
 * has one (tgkill(2)). No file is opened: the thread is waiting for us.
 */
static struct target *target_of_thread(struct capture *c, uint32_t tid)
{
	for (struct target *t = c->targets; t != NULL; t = t->next)
		if (!t->ended && (syscall(SYS_tgkill, t->pid, tid, 0) == 0 ||
				  errno != ESRCH))
			return t;
	return NULL;
}

/*
 * A stop of a thread that is not known: a new thread of a target, or a process
 * made by clone(2) without SIGCHLD, which the kernel attaches as well and
 * which is let go.
 */
static void first_stop(struct capture *c, uint32_t tid,
		       enum tracee_status status, int signal)
{
	struct target *t = target_of_thread(c, tid);
	void *data = (void *)(intptr_t)(status == TRACEE_SIGNAL ? signal : 0);
	struct user_regs_struct regs;

	if (status != TRACEE_GROUP_STOP && arch_get_regs(tid, &regs) == 0 &&
	    repair_call(tid, &regs, signal) && t != NULL)
		t->counters->rewritten++;
	if (t == NULL) {
		(void)ptrace(PTRACE_DETACH, tid, NULL, data);
		return;
	}
	/* It goes on at once: what follows opens files. */
	if (status == TRACEE_GROUP_STOP)
		(void)ptrace(PTRACE_LISTEN, tid, NULL, NULL);
	else
		(void)ptrace(PTRACE_CONT, tid, NULL, data);
	t->counters->event_stops++;
	/* If that fails, it is found by a scan, or dead. */
	(void)!target_adopt(t, tid);
}

/*
 * Reported under the number of the leader, whoever called exec; the leader
 * itself may not be known, because it was dead when we came.
 */
static void handle_exec(struct capture *c, uint32_t tid)
{
	struct target *t = target_of(c, tid);
	struct user_regs_struct regs;

	/* The new program's one thread is here: to let go now leaves none. */
	if (t == NULL || arch_get_regs(tid, &regs) == -ENOEXEC) {
		(void)ptrace(PTRACE_DETACH, tid, NULL, NULL);
		if (t != NULL) {
			target_forget_threads(t);
			t->foreign = true;
			end_target(t);
		}
		return;
	}
	(void)ptrace(PTRACE_CONT, tid, NULL, NULL);
	t->counters->event_stops++;
	target_executed(t);
	(void)!target_adopt(t, tid);
}

static void handle_death(struct capture *c, uint32_t tid)
{
	struct thread *th = capture_thread(c, tid);
	struct target *t = th != NULL ? th->target : target_of(c, tid);

	if (t == NULL)
		return;
	if (th != NULL)
		thread_remove(th, MISSED_EXITED);
	/* If the others died of an exec, we were perhaps not told of it. */
	t->doubt |= t->n_threads == 1;
	/* A thread whose first stop is still to come keeps the target alive. */
	if (t->n_threads == 0 && target_scan(t) <= 0 && t->held_up_ticks == 0)
		end_target(t);
}

static void handle_status(struct capture *c, uint32_t tid, int status)
{
	int signal;
	enum tracee_status kind = tracee_classify(status, &signal);
	struct thread *th = capture_thread(c, tid);

	switch (kind) {
	case TRACEE_DEAD:
		handle_death(c, tid);
		return;
	case TRACEE_EXEC:
		handle_exec(c, tid);
		return;
	case TRACEE_TRAP:
	case TRACEE_GROUP_STOP:
	case TRACEE_SIGNAL:
	case TRACEE_CALL:
	case TRACEE_CLONE:
	case TRACEE_OTHER:
		if (th == NULL)
			first_stop(c, tid, kind, signal);
		else
			thread_stopped(th, kind, signal);
		return;
	}
}

/* By their numbers. */
static void take_pending(struct capture *c)
{
	struct thread *next;
	int status;

	for (struct thread *th = c->pending; th != NULL; th = next) {
		uint32_t tid = th->tid;

		next = th->next_pending;
		if (waitpid((pid_t)tid, &status, __WALL | WNOHANG) <= 0)
			continue;
		handle_status(c, tid, status);
		/* Exec takes all of its process's threads with it. */
		if (status >> 16 == PTRACE_EVENT_EXEC)
			return;
	}
}

/* Takes wait statuses that are there; returns how many. */
static unsigned int take_any(struct capture *c, unsigned int max)
{
	unsigned int n = 0;
	int status;
	pid_t tid;

	while (n < max && (tid = waitpid(-1, &status, __WALL | WNOHANG)) > 0) {
		handle_status(c, (uint32_t)tid, status);
		n++;
	}
	return n;
}

/*
 * waitpid(-1) goes through all tracees, 50 us for 1,000 of them; of one that is
 * called by its number, it takes 300 ns.
 */
#define FEW_SHARE 16

static size_t n_threads(const struct capture *c)
{
	return c->n_by_index - c->n_free;
}

static bool are_few(const struct capture *c)
{
	return c->n_pending <= n_threads(c) / FEW_SHARE;
}

bool capture_reap(struct capture *c)
{
	bool more;

	/* That the caller has waited for stops is no wait for a read. */
	capture_note_waits(c, c->now_ns);
	if (are_few(c))
		take_pending(c);
	more = take_any(c, REAP_MAX) == REAP_MAX;
	/*
	 * It finds the newest first: while threads come faster than their stops
	 * are answered, those that we have interrupted would wait for ever.
	 */
	if (more)
		take_pending(c);
	free_ended(c);
	return more;
}

/*
 * While a target with many threads is looked at, those that were interrupted
 * first are not kept waiting: of the stops so many are taken after each
 * portion.
 */
#define STOPS_BETWEEN 16
/* Of more threads than this, waitpid(-1) itself takes too long for that. */
#define BETWEEN_THREADS_MAX 2048

static void tick(struct capture *c, struct target *t, uint64_t number,
		 uint64_t time_ns)
{
	if (target_tick(t, number, time_ns)) {
		while (target_tick_on(t)) {
			if (are_few(c))
				take_pending(c);
			else if (n_threads(c) <= BETWEEN_THREADS_MAX)
				(void)take_any(c, STOPS_BETWEEN);
		}
	}
	/* No thread is left whose death would be told to us. */
	if (t->n_threads == 0 && t->held_up_ticks == 0)
		end_target(t);
}

void capture_tick(struct capture *c, uint64_t number, uint64_t due_ns,
		  uint64_t time_ns)
{
	c->due_ns = due_ns;
	c->now_ns = c->options.now_ns();
	capture_note_waits(c, c->now_ns);
	capture_end_waits(c, c->now_ns);
	for (struct target *t = c->targets; t != NULL; t = t->next)
		tick(c, t, number, time_ns);
	free_ended(c);
}

size_t capture_pending(const struct capture *c)
{
	return c->n_pending;
}

void capture_reset(struct capture *c, const struct capture_sink *sink)
{
	for (struct target *t = c->targets; t != NULL; t = t->next)
		if (t->sink == sink)
			target_reset(t);
}

void capture_hint(struct capture *c, const struct capture_sink *sink,
		  uint32_t target, uint32_t tid, uint64_t top,
		  const struct snapshot_second *second)
{
	struct thread *th = capture_thread(c, tid);

	if (th == NULL || th->target->id != target || th->target->sink != sink)
		return;
	th->hint_top = max_u64(top, SNAPSHOT_NO_HINT);
	/* More than it was given: it is given that at the next tick. */
	if (top > th->copied_top ||
	    (second->addr != 0 && second->addr != th->second.addr))
		thread_wake(th);
	th->second = *second;
}

/*
 * The rests of calls have this long until they are cut off: few take it, and
 * whoever ends us waits.
 */
#define RESTS_NS (1 * NS_PER_SEC)

/* True if there are any in the list. */
static bool end_rests(struct thread *list, bool cut)
{
	bool found = false;

	for (struct thread *th = list; th != NULL; th = th->next) {
		if (!rest_is_at_risk(&th->rest))
			continue;
		found = true;
		if (cut)
			(void)ptrace(PTRACE_INTERRUPT, th->tid, NULL, NULL);
	}
	return found;
}

bool capture_settle(struct capture *c)
{
	uint64_t now = c->options.now_ns();
	bool found = false;

	if (c->finish_ns == 0)
		c->finish_ns = now;
	c->finishing = now - c->finish_ns >= RESTS_NS;
	for (struct target *t = c->targets; t != NULL; t = t->next) {
		found |= end_rests(t->awake, c->finishing);
		found |= end_rests(t->asleep, c->finishing);
	}
	return !found && c->n_pending == 0;
}

void capture_rate(struct capture *c, uint32_t target, uint32_t ticks,
		  uint32_t of_ticks)
{
	for (struct target *t = c->targets; t != NULL; t = t->next) {
		if (t->id != target)
			continue;
		t->rate_ticks = ticks;
		t->rate_of = of_ticks;
	}
}

bool capture_finish(struct capture *c)
{
	for (struct target *t = c->targets; t != NULL; t = t->next) {
		/* Who is interrupted is awake. */
		for (struct thread *th = t->awake; th != NULL; th = th->next) {
			if (!th->pending)
				continue;
			t->counters->missed[MISSED_NOT_STOPPED] +=
				th->unaccounted;
			thread_clear_pending(th);
		}
		/* All samples are in: the reader's chunk can end here. */
		(void)target_tell_tick(t, t->last_tick, t->last_ns);
		end_target(t);
	}
	free_ended(c);
	return c->targets == NULL;
}
