#include <sys/ptrace.h>
#include <sys/wait.h>

#include "lib/capture/restart/repair.h"
#include "lib/capture/target.h"

/*
 * Wait statuses taken at once, 10 to 20 us each: half a tick. A process that
 * starts threads without end must not keep us from ticks and heartbeats.
 */
#define REAP_MAX 256

static struct target *target_of(struct capture *c, uint32_t pid)
{
	FOR_EACH_TARGET (t, c)
		if ((uint32_t)t->pid == pid && t->phase != TARGET_ENDED)
			return t;
	return NULL;
}

/* The target that a stopped thread belongs to, or NULL. */
static struct target *target_of_thread(struct capture *c, uint32_t tid)
{
	FOR_EACH_TARGET (t, c)
		if (t->phase != TARGET_ENDED && target_has(t, tid))
			return t;
	return NULL;
}

/* It has those of the thread that made it, or whose place it took. */
static void set_options(const struct target *t, uint32_t tid)
{
	if (t->exit_stop || t->capture->options.born != NULL)
		(void)ptrace(PTRACE_SETOPTIONS, tid, NULL, target_options(t, tid));
}

/*
 * A child that was forked by a target, or by another such child, or a thread of
 * one. It goes on at once, and stays attached, whatever the caller makes of it.
 * Before it dies it stops as a target's leader does: it may have been made by a
 * thread that has no such option.
 */
static void follow(struct capture *c, uint32_t tid, enum tracee_status status, int signal)
{
	const bool is_new = status == TRACEE_TRAP || status == TRACEE_GROUP_STOP;

	if (is_new)
		(void)ptrace(PTRACE_SETOPTIONS, tid, NULL,
			     capture_base_options(c) | PTRACE_O_TRACEEXIT);
	capture_resume(tid, status, signal, PTRACE_CONT);
	if (is_new)
		c->options.born(c->options.ctx, (int32_t)tid);
}

/*
 * A stop of a thread that is not known: a new thread of a target, or a process
 * made by fork(2), or by clone(2) without SIGCHLD, which the kernel attaches as
 * well. Unless children are followed it is let go.
 */
static void first_stop(struct capture *c, uint32_t tid, enum tracee_status status, int signal)
{
	struct target *t = target_of_thread(c, tid);
	struct user_regs_struct regs;
	struct thread *th;
	uint64_t pointer = 0;

	if (status != TRACEE_GROUP_STOP && arch_get_regs(tid, &regs) == 0) {
		if (repair_call(tid, &regs, signal) && t != NULL)
			t->counters->rewritten++;
		pointer = arch_thread_pointer(&regs);
	}
	if (t == NULL && c->options.born != NULL) {
		follow(c, tid, status, signal);
		return;
	}
	if (t == NULL) {
		(void)ptrace(PTRACE_DETACH, tid, NULL, tracee_delivery(status, signal));
		return;
	}
	set_options(t, tid);
	/* It goes on at once: what follows opens files. */
	capture_resume(tid, status, signal, PTRACE_CONT);
	t->counters->event_stops++;
	/* If that fails, it is found by a scan, or dead. */
	(void)!target_adopt(t, tid);
	th = capture_thread(c, tid);
	if (th != NULL)
		th->pointer = pointer;
}

/*
 * Reported under the number of the leader, whoever called exec; the leader
 * itself may not be known, because it was dead when we came.
 */
static void handle_exec(struct capture *c, uint32_t tid)
{
	struct target *t = target_of(c, tid);
	struct user_regs_struct regs;

	if (t == NULL && c->options.born != NULL) {
		(void)ptrace(PTRACE_CONT, tid, NULL, NULL);
		return;
	}
	/* The new program's one thread is here: to let go now leaves none. */
	if (t == NULL || arch_get_regs(tid, &regs) == -ENOEXEC) {
		(void)ptrace(PTRACE_DETACH, tid, NULL, NULL);
		if (t != NULL) {
			target_forget_threads(t);
			t->foreign = true;
			target_end(t);
		}
		return;
	}
	set_options(t, tid);
	(void)ptrace(PTRACE_CONT, tid, NULL, NULL);
	t->counters->event_stops++;
	target_executed(t);
	/* If that fails, it is found by a scan, or dead. */
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
	target_end_if_gone(t);
}

/*
 * The leader is let go of, and dies as if nobody traced it. Who was made by it
 * may have its options still: a thread, or a process that is none of ours.
 */
static void handle_exit(struct capture *c, uint32_t tid)
{
	struct thread *th = capture_thread(c, tid);
	struct target *t = th != NULL ? th->target : target_of(c, tid);

	if (th != NULL && tid != (uint32_t)t->pid) {
		(void)ptrace(PTRACE_CONT, tid, NULL, NULL);
		return;
	}
	/* It fails after a SIGKILL before Linux 5.17: it dies as others do. */
	if (ptrace(PTRACE_DETACH, tid, NULL, NULL) < 0 || t == NULL)
		return;
	t->counters->event_stops++;
	t->leader_dies = true;
	if (th != NULL)
		thread_remove(th, MISSED_EXITED);
	target_end_if_gone(t);
}

/*
 * The parent stops in fork(2) before it can end, so the caller knows of the
 * child before it knows of the parent's end. The child may not have run yet.
 */
static void tell_forked(struct capture *c, uint32_t tid, int status)
{
	const int event = status >> 16;
	unsigned long pid;

	if (c->options.born != NULL &&
	    (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK) &&
	    ptrace(PTRACE_GETEVENTMSG, tid, NULL, &pid) == 0)
		c->options.born(c->options.ctx, (int32_t)pid);
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
	case TRACEE_EXIT:
		handle_exit(c, tid);
		return;
	case TRACEE_TRAP:
	case TRACEE_GROUP_STOP:
	case TRACEE_SIGNAL:
	case TRACEE_CALL:
	case TRACEE_CLONE:
	case TRACEE_OTHER:
		tell_forked(c, tid, status);
		if (th == NULL) {
			first_stop(c, tid, kind, signal);
			return;
		}
		if (th->options_due)
			set_options(th->target, tid);
		th->options_due = false;
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

static bool are_few(const struct capture *c)
{
	return c->n_pending <= capture_threads(c) / FEW_SHARE;
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
	capture_free_ended(c);
	return more;
}

void capture_take(struct capture *c, uint32_t tid, int status)
{
	capture_note_waits(c, c->now_ns);
	handle_status(c, tid, status);
	capture_free_ended(c);
}

/*
 * While a target with many threads is looked at, those that were interrupted
 * first are not kept waiting: of the stops so many are taken after each
 * portion.
 */
#define STOPS_BETWEEN 16
/* Of more threads than this, waitpid(-1) itself takes too long for that. */
#define BETWEEN_THREADS_MAX 2048

void capture_reap_some(struct capture *c)
{
	if (are_few(c))
		take_pending(c);
	else if (capture_threads(c) <= BETWEEN_THREADS_MAX)
		(void)take_any(c, STOPS_BETWEEN);
}
