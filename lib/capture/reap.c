#include "lib/capture/reap.h"

#include <sys/ptrace.h>
#include <time.h>

#include "lib/capture/crash.h"
#include "lib/capture/detach.h"
#include "lib/capture/exec.h"
#include "lib/capture/held_exec.h"
#include "lib/capture/ptrace/arch.h"
#include "lib/capture/ptrace/tracee.h"
#include "lib/capture/restart/repair.h"
#include "lib/capture/slow_memory.h"
#include "lib/capture/state.h"
#include "lib/capture/stop.h"
#include "lib/capture/targets.h"
#include "lib/capture/thread_pointer.h"
#include "lib/capture/tracees.h"

/*
 * The most wait statuses that one call handles. Each takes 10 to 20 us, so all take half a tick. A
 * process that starts threads without end must not keep the tracer from ticks and heartbeats.
 */
#define REAP_MAX 256

/* Returns the target that has a thread of this number, or NULL. */
static struct traced_process *target_of_thread(struct capture *c, uint32_t tid)
{
	FOR_EACH_TARGET (t, c)
		if (t->phase != TRACED_ENDED && tracees_exists(t, tid))
			return t;
	return NULL;
}

/*
 * Sets the ptrace options of a new thread, which has inherited those of the thread that made it, or
 * of a leader, which has those of the thread that replaced it.
 */
static void set_options(const struct traced_process *t, uint32_t tid)
{
	if (t->exit_stop || t->capture->options.born != NULL)
		(void)ptrace(PTRACE_SETOPTIONS, tid, NULL, tracees_options(t, tid));
}

/*
 * Handles a stop of a forked child of a target, of a child of such a child, or of a thread of one.
 * The child is continued at once and stays attached, whatever the caller does with it. The child is
 * set to stop before it dies, as a target's leader does, because the thread that made it may have
 * no such option.
 */
static void follow(struct capture *c, uint32_t tid, enum tracee_status status, int signal)
{
	const bool is_new = status == TRACEE_TRAP || status == TRACEE_GROUP_STOP;

	if (crash_leave_child(c, tid, status, signal))
		return;
	if (is_new)
		(void)ptrace(PTRACE_SETOPTIONS, tid, NULL,
			     tracees_base_options(c) | PTRACE_O_TRACEEXIT);
	stop_continue(tid, status, signal, PTRACE_CONT);
	if (is_new)
		c->options.born(c->options.ctx, (int32_t)tid);
}

/*
 * Handles the first stop of a thread that is not in the table: a new thread of a target, or a
 * process made by fork(2), or by clone(2) without SIGCHLD, which the kernel attaches, too. If
 * children are not followed, such a process is detached.
 */
static void first_stop(struct capture *c, uint32_t tid, enum tracee_status status, int signal)
{
	struct traced_process *t = target_of_thread(c, tid);
	struct arch_regs regs;
	struct thread *th;
	uint64_t pointer = 0;

	if (status != TRACEE_GROUP_STOP && arch_get_regs(tid, &regs) == 0) {
		if (repair_call(tid, &regs, signal) && t != NULL)
			t->counters->rewritten++;
		pointer = arch_thread_pointer(tid, &regs);
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
	/* The thread is continued before files are opened. */
	stop_continue(tid, status, signal, PTRACE_CONT);
	t->counters->event_stops++;
	/* If adopting fails, the thread is dead, or a scan finds it. */
	(void)!tracees_adopt(t, tid);
	th = tracees_find(c, tid);
	if (th != NULL)
		thread_pointer_set(th, pointer);
}

/*
 * Lets a process go on after its exec, whose event has the number of the leader, whichever thread
 * called exec. The leader itself may not be in the table, because it was dead when capture
 * attached.
 */
static void go_on_after_exec(struct capture *c, uint32_t tid)
{
	struct traced_process *t = targets_find(c, (int32_t)tid);
	const bool is_child = t == NULL && c->options.born != NULL;
	struct arch_regs regs;

	/*
	 * The new program has one thread, which is stopped here: after this detach no thread of it
	 * is traced.
	 */
	if ((t == NULL && !is_child) || arch_get_regs(tid, &regs) == -ENOEXEC) {
		(void)ptrace(PTRACE_DETACH, tid, NULL, NULL);
		if (t != NULL) {
			tracees_forget_all(t);
			targets_end(t, TRACED_END_FOREIGN);
		}
		return;
	}
	if (is_child) {
		(void)ptrace(PTRACE_CONT, tid, NULL, NULL);
		return;
	}
	set_options(t, tid);
	(void)ptrace(PTRACE_CONT, tid, NULL, NULL);
	t->counters->event_stops++;
	exec_happened(t);
	/* If adopting fails, the thread is dead, or a scan finds it. */
	(void)!tracees_adopt(t, tid);
}

/* Leaves a process at the stop of its exec, or one that was held there. */
static void leave_after_exec(struct capture *c, uint32_t tid)
{
	struct traced_process *t = targets_find(c, (int32_t)tid);

	(void)ptrace(PTRACE_DETACH, tid, NULL, NULL);
	if (t == NULL)
		return;
	tracees_forget_all(t);
	targets_end(t, TRACED_END_GONE);
}

static void handle_exec(struct capture *c, uint32_t tid)
{
	if (!held_exec_begin(c, (int32_t)tid))
		go_on_after_exec(c, tid);
}

void capture_decide_exec(struct capture *c, int32_t pid, bool leave)
{
	struct traced_process *t = targets_find(c, pid);

	if (!held_exec_end(c, pid)) {
		if (leave && t != NULL)
			(void)!capture_remove(c, t->id);
		return;
	}
	if (leave)
		leave_after_exec(c, (uint32_t)pid);
	else
		go_on_after_exec(c, (uint32_t)pid);
	targets_free_ended(c);
}

void capture_leave_overdue_execs(struct capture *c)
{
	for (int32_t pid = held_exec_overdue(c); pid != 0; pid = held_exec_overdue(c))
		capture_decide_exec(c, pid, true);
}

static void handle_death(struct capture *c, uint32_t tid)
{
	struct thread *th = tracees_find(c, tid);
	struct traced_process *t = th != NULL ? th->target : targets_find(c, (int32_t)tid);

	if (t == NULL)
		return;
	if (th != NULL)
		tracees_remove(th, MISSED_EXITED);
	/* The other threads may have died because of an exec that was not reported. */
	t->exec.doubt |= t->threads.n == 1;
	/* The target has not ended if the first stop of another thread is still to come. */
	targets_end_if_gone(t);
}

/*
 * Handles PTRACE_EVENT_EXIT. Capture detaches from the leader, which then dies as if it were not
 * traced. Others than leaders of targets may have this stop, too: a thread that the leader has made
 * inherits the leader's options, and so does a process that is not a target.
 */
static void handle_exit(struct capture *c, uint32_t tid)
{
	struct thread *th = tracees_find(c, tid);
	struct traced_process *t = th != NULL ? th->target : targets_find(c, (int32_t)tid);

	if (th != NULL && tid != (uint32_t)t->pid) {
		(void)ptrace(PTRACE_CONT, tid, NULL, NULL);
		return;
	}
	/*
	 * Before Linux 5.17 the detach fails after a SIGKILL. Then the leader dies as other threads
	 * do.
	 */
	if (ptrace(PTRACE_DETACH, tid, NULL, NULL) < 0 || t == NULL)
		return;
	t->counters->event_stops++;
	exec_leader_begins_to_die(t);
	if (th != NULL)
		tracees_remove(th, MISSED_EXITED);
	targets_end_if_gone(t);
}

/*
 * Reports a forked child. The parent stops in fork(2) before it can end, so the caller
 * gets the child's pid before it gets the parent's end. The child may not have run yet. In a crash
 * notes a new thread or child of another target: th is the parent.
 */
static void note_birth(struct capture *c, uint32_t tid, const struct thread *th, int status)
{
	const int event = status >> 16;
	const bool is_fork = event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK;
	const bool reports = is_fork && c->options.born != NULL;
	const bool notes = (is_fork || event == PTRACE_EVENT_CLONE) && c->crashing != NULL &&
			   th != NULL && th->target != c->crashing &&
			   c->n_newborn < array_size(c->newborn);
	unsigned long born;

	if ((!reports && !notes) || ptrace(PTRACE_GETEVENTMSG, tid, NULL, &born) < 0)
		return;
	if (notes)
		c->newborn[c->n_newborn++] = (uint32_t)born;
	if (reports)
		c->options.born(c->options.ctx, (int32_t)born);
}

static void handle_status(struct capture *c, uint32_t tid, int status);
static void take_pending(struct capture *c);

/*
 * Handles the statuses of the threads in the list, except those of held threads (th->held). Returns
 * the number of statuses.
 */
static unsigned int take_list(struct capture *c, struct thread *list)
{
	struct thread *next;
	unsigned int n = 0;
	int status;

	for (struct thread *th = list; th != NULL; th = next) {
		const uint32_t tid = th->tid;

		next = th->next;
		if (th->held.is || tracee_wait((pid_t)tid, false, &status) <= 0)
			continue;
		handle_status(c, tid, status);
		n++;
		/* An exec frees all threads of its process. */
		if (status >> 16 == PTRACE_EVENT_EXEC)
			break;
	}
	return n;
}

static unsigned int take_target(struct traced_process *t)
{
	const unsigned int n = take_list(t->capture, t->threads.asleep);

	return n + take_list(t->capture, t->threads.awake);
}

/* A thread that was interrupted stops as soon as it gets a processor. */
#define CRASH_NAP_NS (50 * NS_PER_US)

/* Lets other threads run if no stop has come. */
static void nap_unless(unsigned int n_stops)
{
	const struct timespec nap = {.tv_nsec = CRASH_NAP_NS};

	if (n_stops == 0)
		(void)nanosleep(&nap, NULL);
}

/* In a crash the rounds through all other threads take at most 1/OTHERS_SHARE of the time. */
#define OTHERS_SHARE 4

/*
 * Handles the statuses of other targets' threads in a crash of t, so that they do not stand still
 * until it is over: signals, births and ends, too. A new thread's first stop is handled after its
 * parent's, which names it. due_ns: when the next round is due; 0 at first.
 */
static void take_others(struct traced_process *t, uint64_t *due_ns)
{
	struct capture *c = t->capture;
	const uint64_t began_ns = c->options.now_ns();
	uint64_t ended_ns;
	int status;

	if (began_ns < *due_ns)
		return;
	FOR_EACH_TARGET (other, c) {
		state_beat(t);
		if (other != t)
			(void)take_target(other);
	}
	for (size_t i = c->n_newborn; i-- > 0;) {
		const uint32_t tid = c->newborn[i];
		const pid_t r = tracee_wait((pid_t)tid, false, &status);

		if (r == 0)
			continue;
		c->newborn[i] = c->newborn[--c->n_newborn];
		if (r > 0)
			handle_status(c, tid, status);
	}
	ended_ns = c->options.now_ns();
	*due_ns = ended_ns + (OTHERS_SHARE - 1) * (ended_ns - began_ns);
}

/*
 * Returns true if the crashed thread has died while it was held: the process was killed, or another
 * thread executes a program. The stop in which the thread is held stays in the kernel.
 */
static bool crashed_is_gone(struct traced_process *t)
{
	const uint32_t tid = t->crash.now.tid;
	int status, signal;

	if (tracees_find(t->capture, tid) == NULL)
		return true;
	if (tracee_wait((pid_t)tid, false, &status) <= 0 ||
	    tracee_classify(status, &signal) == TRACEE_SIGNAL)
		return false;
	handle_status(t->capture, tid, status);
	/* Its death may still be to come: the next call must not say otherwise. */
	t->crash.now.tid = 0;
	return true;
}

/*
 * Waits until all threads of the crashing process are held, or the crashed thread is gone. Returns
 * false if a thread has not stopped in time.
 */
static bool hold_all(struct traced_process *t, uint64_t began_ns)
{
	struct capture *c = t->capture;
	uint64_t stopped_ns = began_ns, others_ns = 0;
	unsigned int n;

	while (!crashed_is_gone(t) && !crash_interrupt(t)) {
		if (!crash_may_wait(t, began_ns, stopped_ns))
			return false;
		n = take_target(t);
		nap_unless(n);
		if (n > 0)
			stopped_ns = c->options.now_ns();
		take_pending(c);
		take_others(t, &others_ns);
		state_beat(t);
	}
	return true;
}

/* Returns false if the crashed thread has not reached its handler in time. */
static bool enter_handler(struct traced_process *t, uint64_t began_ns)
{
	struct capture *c = t->capture;
	const uint64_t held_ns = c->options.now_ns();
	uint64_t others_ns = 0;

	crash_enter_handler(t);
	while (!crash_is_in_handler(t)) {
		if (!crash_may_wait(t, began_ns, held_ns))
			return false;
		nap_unless(0);
		take_pending(c);
		take_others(t, &others_ns);
		state_beat(t);
	}
	return true;
}

/* Waits until the end of the tracing thread makes no call of another target fail. */
static void settle_others(struct traced_process *t)
{
	struct capture *c = t->capture;
	const uint64_t end_ns = c->options.now_ns() + CRASH_STOP_NS;
	uint64_t others_ns = 0;

	while (!detach_others_are_settled(c, t) && c->options.now_ns() < end_ns) {
		take_others(t, &others_ns);
		nap_unless(0);
		state_beat(t);
	}
}

/*
 * Detaches from a process before a thread runs its handler of a crash signal. All waits are for
 * single threads: a wait for any tracee would return the held stops.
 */
static void leave_in_crash(struct thread *th, int signal)
{
	struct traced_process *t = th->target;
	struct capture *c = t->capture;
	const uint64_t began_ns = c->options.now_ns();
	bool held;

	c->options.beat->touching = t->id;
	crash_begin(th, signal);
	stop_handle(th, TRACEE_SIGNAL, signal);
	held = hold_all(t, began_ns);
	if (crashed_is_gone(t)) {
		crash_is_void(t);
	} else if (held && enter_handler(t, began_ns)) {
		crash_detach(t);
	} else if (crash_may_end_tracer(t)) {
		settle_others(t);
		detach_demand_now(c);
	} else {
		crash_runs_traced(t);
	}
	c->options.beat->touching = 0;
}

static void handle_status(struct capture *c, uint32_t tid, int status)
{
	int signal;
	enum tracee_status kind = tracee_classify(status, &signal);
	struct thread *th = tracees_find(c, tid);

	if (th != NULL && kind == TRACEE_SIGNAL && th->target != c->crashing &&
	    crash_is_due(th, signal)) {
		/* The stop of a second crash is kept by the kernel until the first is handled. */
		if (c->crashing == NULL)
			leave_in_crash(th, signal);
		return;
	}
	if (kind == TRACEE_DEAD || kind == TRACEE_EXIT)
		(void)held_exec_end(c, (int32_t)tid);
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
		note_birth(c, tid, th, status);
		if (th == NULL) {
			first_stop(c, tid, kind, signal);
			return;
		}
		if (th->options_due)
			set_options(th->target, tid);
		th->options_due = false;
		stop_handle(th, kind, signal);
		return;
	}
}

/*
 * Returns true if handling this status may have freed other threads: an exec frees all threads of
 * its process, and so does a crash that capture has left the process for.
 */
static bool may_free_threads(const struct capture *c, int status)
{
	int signal;
	const enum tracee_status kind = tracee_classify(status, &signal);

	return kind == TRACEE_EXEC || (kind == TRACEE_SIGNAL && tracee_signal_crashes(signal) &&
				       (c->crashing == NULL || c->detaching.at_once));
}

/* Handles the stops of interrupted threads, with one wait for each thread. */
static void take_pending(struct capture *c)
{
	struct thread *next;
	int status;

	for (struct thread *th = c->pending; th != NULL; th = next) {
		uint32_t tid = th->tid;

		next = th->next_pending;
		if (tracee_wait((pid_t)tid, false, &status) <= 0)
			continue;
		handle_status(c, tid, status);
		if (may_free_threads(c, status))
			return;
	}
}

/* Handles up to max wait statuses that are available. Returns their number. */
static unsigned int take_any(struct capture *c, unsigned int max)
{
	unsigned int n = 0;
	int status;
	pid_t tid;

	while (n < max && !c->detaching.at_once && (tid = tracee_wait(-1, false, &status)) > 0) {
		handle_status(c, (uint32_t)tid, status);
		n++;
	}
	return n;
}

/*
 * If the interrupted threads are fewer than 1/FEW_SHARE of all, each is waited for by its number:
 * a wait for any tracee visits all of them, 50 us for 1,000 of them, and one by number takes 300
 * ns.
 */
#define FEW_SHARE 16

static bool are_few(const struct capture *c)
{
	return c->n_pending <= state_threads(c) / FEW_SHARE;
}

bool capture_reap(struct capture *c)
{
	bool more;

	if (c->detaching.at_once)
		return false;
	/* The tracer has slept to wait for stops, and not for a read of memory. */
	slow_memory_note_switches(c, c->now_ns);
	if (are_few(c))
		take_pending(c);
	more = take_any(c, REAP_MAX) == REAP_MAX;
	/*
	 * A wait for any tracee returns the newest threads first. While threads are made faster
	 * than their stops are handled, interrupted threads would wait for ever.
	 */
	if (more)
		take_pending(c);
	targets_free_ended(c);
	return more;
}

void capture_handle_status(struct capture *c, uint32_t tid, int status)
{
	slow_memory_note_switches(c, c->now_ns);
	handle_status(c, tid, status);
	targets_free_ended(c);
}

/*
 * The number of stops that are handled after each portion of a target with many threads, so that
 * the threads that were interrupted first do not wait long.
 */
#define STOPS_BETWEEN 16
/* With more threads than this, a wait for any tracee takes too long. */
#define BETWEEN_THREADS_MAX 2048

void reap_some(struct capture *c)
{
	if (are_few(c))
		take_pending(c);
	else if (state_threads(c) <= BETWEEN_THREADS_MAX)
		(void)take_any(c, STOPS_BETWEEN);
}
