#include "daemon/broker/children/reap.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "daemon/broker/children/ship.h"
#include "daemon/broker/state/forks.h"
#include "daemon/common/child.h"
#include "daemon/common/log.h"
#include "daemon/common/spawn.h"
#include "daemon/process/threads.h"
#include "lib/base/clock.h"

/* A child that ends sooner than this after its start has failed to work. */
#define STABLE_NS (10 * NS_PER_SEC)

/*
 * Delay before a restart: none after the first failure, BACKOFF_FIRST_NS after the second, then
 * twice as long after each one, up to BACKOFF_MAX_NS.
 */
#define BACKOFF_FIRST_NS (100 * NS_PER_MS)
#define BACKOFF_MAX_NS	 (5 * NS_PER_SEC)

/* After this many failures in a row, the last ones BACKOFF_MAX_NS apart, an error is logged. */
#define FAILURES_LOGGED 8

/*
 * A child that exits before MSG_READY would do so again. A child that was killed, for example by
 * the kernel for want of memory, is tried this often.
 */
#define FIRST_STARTS_MAX 3

/*
 * How long a killed child may take to die. A capture that traces thousands of threads dies
 * slowly. A capture that reads memory which only a FUSE server can provide may never die
 * (request_wait_answer() in fs/fuse/dev.c).
 */
#define KILLED_MS 2000

void reap_child_failed(struct child *child, const char *what)
{
	const uint64_t now = clock_mono_ns();

	if (now - child->started_ns >= STABLE_NS)
		child->failures = 0;
	child->restart_ns = now + backoff_ns(child->failures, BACKOFF_FIRST_NS, BACKOFF_MAX_NS);
	child->failures++;
	if (child->failures == 1)
		log_warning("%s %s: starting it again", child->type->name, what);
	else if (child->failures == FAILURES_LOGGED)
		log_error("%s %s, %u times in a row: it is started again every %u s, and %s until "
			  "it keeps running; its messages above, if there are any, say why",
			  child->type->name, what, FAILURES_LOGGED,
			  (unsigned int)(BACKOFF_MAX_NS / NS_PER_SEC), child->type->loss);
}

const char *reap_reason_name(enum restart_reason reason)
{
	static const char *const names[RESTART_REASON_N] = {
		[RESTART_SIGNAL] = "signal",
		[RESTART_STATUS] = "status",
		[RESTART_HEARTBEAT] = "heartbeat",
		[RESTART_MISBEHAVED] = "dismissed",
	};

	return reason < RESTART_REASON_N ? names[reason] : "";
}

void reap_count_restart(struct restarts *r, const struct child *child, int status)
{
	enum restart_reason reason = RESTART_STATUS;

	if (child->state == CHILD_HUNG)
		reason = RESTART_HEARTBEAT;
	else if (child->state == CHILD_KILLED)
		reason = RESTART_MISBEHAVED;
	else if (WIFSIGNALED(status))
		reason = RESTART_SIGNAL;
	r->n[child->type->kind][reason]++;
}

static void add_usage(struct child *child, const struct rusage *usage)
{
	uint64_t rss = (uint64_t)usage->ru_maxrss * 1024;

	child->usage.cpu_s += (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
			      (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;
	child->usage.rss_bytes = max_u64(child->usage.rss_bytes, rss);
}

/*
 * Returns true if a restart would fail, too. If another child of this kind has worked, such as
 * the unwind process of another user, the cause may be temporary.
 */
static bool is_hopeless(const struct child *child, int status)
{
	return !child->children->has_worked[child->type->kind] &&
	       (WIFEXITED(status) || child->failures + 1 >= FIRST_STARTS_MAX);
}

/* Ends the broker. Only the first such child is logged: the others have the same cause. */
static void end_broker(const struct child *child, const char *what)
{
	struct state *s = child->children->state;

	if (!s->start_failed)
		log_error("%s %s before it was ready: sentry-profd ends, since without it there is "
			  "no profile",
			  child->type->name, what);
	s->start_failed = true;
	state_advance(s, PHASE_STOPPING);
	s->end_at_once = true;
}

/* Room for what has happened to a child: a text for a line that begins with the child's name. */
#define WHAT_MAX 96

/* pid: that of the process that has ended. */
static void describe_end(int32_t pid, int status, char ret[WHAT_MAX])
{
	if (WIFSIGNALED(status))
		(void)snprintf(ret, WHAT_MAX, "(pid %d) was ended by signal %d (%s)", pid,
			       WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status) == SPAWN_FAILED)
		(void)snprintf(ret, WHAT_MAX, "cannot be executed");
	else
		(void)snprintf(ret, WHAT_MAX, "ended with status %d", WEXITSTATUS(status));
}

static void restart_or_end(struct child *child, int status, const char *what)
{
	if (is_hopeless(child, status)) {
		end_broker(child, what);
		return;
	}
	reap_count_restart(&child->children->restarts, child, status);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != CHILD_OTHER_VERSION) {
		reap_child_failed(child, what);
		return;
	}
	child->restart_ns = 0; /* another process would say the same */
	degraded_begin(&child->children->state->degraded, DEGRADED_VERSION,
		       "%s is not of the version of sentry-profd", child->type->name);
}

/*
 * Handles the end of a child's process: status and usage are those of wait4(2), what is for the
 * log.
 */
static void child_died(struct child *child, int status, const struct rusage *usage,
		       const char *what)
{
	const struct child_events *events = &child->children->events;

	add_usage(child, usage);
	child_log_close(child);
	child->pid = 0;
	if (child->type->kind == CHILD_UNWIND)
		close_fd(&((struct unwind *)child)->link_fd);
	else if (child->type->kind == CHILD_SHIP)
		ship_died((struct ship *)child);
	if (events->died != NULL)
		events->died(events->ctx, child, status);
	if (child_is_wanted(child))
		restart_or_end(child, status, what);
}

static struct child *child_of(struct children *c, int32_t pid)
{
	struct child *child;

	for (size_t i = 0; (child = child_at(c, i)) != NULL; i++)
		if (child->pid == pid)
			break;
	return child;
}

void children_reap(struct children *c)
{
	char what[WHAT_MAX];
	struct rusage usage;
	siginfo_t ended;
	int status;

	for (;;) {
		struct child *child;
		bool is_own;

		/* WNOWAIT: the pid stays the child's until wait4() frees it. */
		ended.si_pid = 0;
		if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) < 0 || ended.si_pid == 0)
			return;
		child = child_of(c, ended.si_pid);
		if (child != NULL)
			child_read_last(child);
		if (wait4(ended.si_pid, &status, WNOHANG, &usage) <= 0)
			return;
		is_own = forks_remove(ended.si_pid);
		describe_end(ended.si_pid, status, what);
		if (child != NULL)
			child_died(child, status, &usage, what);
		else if (is_own)
			c->events.other_ended(c->events.ctx, ended.si_pid, status, &usage);
	}
}

/* The child was killed and does not die: continue as if it had died. */
static void handle_undead(struct child *child)
{
	static const struct rusage unknown;
	char what[WHAT_MAX];

	log_error("%s (pid %d) cannot be killed: it hangs in the kernel%s", child->type->name,
		  child->pid,
		  child->type->kind == CHILD_CAPTURE
			  ? "; until it ends, no other process can trace the processes that it "
			    "traces"
			  : "");
	child_read_last(child);
	(void)snprintf(what, sizeof(what), "(pid %d) hung in the kernel", child->pid);
	child_died(child, SIGKILL, &unknown, what);
}

static void check_killed(struct child *child)
{
	if (child->pid != 0 && child->state >= CHILD_KILLED &&
	    clock_mono_ns() - child->killed_ns >= KILLED_MS * NS_PER_MS)
		handle_undead(child);
}

void children_check_killed(struct children *c)
{
	struct child *child;

	for (size_t i = 0; (child = child_at(c, i)) != NULL; i++)
		check_killed(child);
}

/*
 * A child ends when it reads the end of its socket. A ship keeps its half to report the outcome
 * of its chunks. Returns true if the child still runs.
 */
static bool end_child(struct child *child)
{
	if (child->type->kind != CHILD_SHIP)
		child_close(child);
	else if (child->fd >= 0)
		(void)shutdown(child->fd, SHUT_WR);
	return child->pid != 0;
}

bool children_close(struct children *c)
{
	bool running = false;
	struct child *child;

	for (size_t i = 0; (child = child_at(c, i)) != NULL; i++)
		running |= end_child(child);
	return running;
}

bool children_ships_work(const struct children *c)
{
	bool works = false;

	for (size_t i = 0; i < c->n_ships && !works; i++) {
		int32_t pid = c->ships[i]->child.pid;

		works = pid != 0 && threads_any_runnable(pid);
	}
	return works;
}

void children_kill(struct children *c)
{
	struct child *child;

	for (size_t i = 0; (child = child_at(c, i)) != NULL; i++)
		(void)child_kill(child);
}
