/*
 * How children end: by themselves, killed, or because the broker does; and
 * when another one takes their place.
 */
#include "daemon/broker/children/reap.h"
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "daemon/broker/broker.h"
#include "daemon/broker/children/children.h"
#include "daemon/broker/children/patience.h"
#include "daemon/broker/children/socket.h"
#include "daemon/broker/delivery/delivery.h"
#include "daemon/broker/delivery/past.h"
#include "daemon/broker/files/blame.h"
#include "daemon/common/log.h"
#include "daemon/common/spawn.h"
#include "daemon/process/threads.h"
#include "lib/base/clock.h"

/* A child that ends sooner than this after its start has failed to work. */
#define SETTLED_NS (10 * NS_PER_SEC)

/* The wait before another start: none, then doubling up to this. */
#define BACKOFF_FIRST_NS (100 * NS_PER_MS)
#define BACKOFF_MAX_NS	 (5 * NS_PER_SEC)

/* So many failures in a row, the last after the longest wait, are no chance. */
#define FAILURES_TOLD 8

/*
 * A child that ends by itself before it was ready would do so again. One that
 * was ended, by the kernel for want of memory for one, is tried so many times.
 */
#define FIRST_TRIES 3

/*
 * What was killed is gone at once, as a rule. It may take a moment if it traces
 * thousands of threads; and for ever if it is in a read of a target's memory
 * that only a FUSE server can end (request_wait_answer() in fs/fuse/dev.c).
 */
#define KILLED_MS 2000

bool child_is_wanted(const struct child *child)
{
	const struct broker *b = child->broker;

	if (b->phase == BROKER_CLOSES || child->is_leaving)
		return false;
	switch (child->type->kind) {
	case CHILD_CAPTURE:
		return broker_samples(b);
	case CHILD_UNWIND:
		return b->phase == BROKER_PROFILES;
	case CHILD_SHIP:
	case CHILD_KIND_N:
		break;
	}
	return true;
}

void child_failed(struct child *child, const char *what)
{
	const uint64_t now = clock_mono_ns();

	if (now - child->started_ns >= SETTLED_NS)
		child->failures = 0;
	child->restart_ns = now + backoff_ns(child->failures, BACKOFF_FIRST_NS, BACKOFF_MAX_NS);
	child->failures++;
	if (child->failures == 1)
		log_warning("%s %s: starting it again", child->type->name, what);
	else if (child->failures == FAILURES_TOLD)
		log_error("%s %s, as %u times before: it is tried again every "
			  "%u s, and %s until it lasts",
			  child->type->name, what, FAILURES_TOLD - 1,
			  (unsigned int)(BACKOFF_MAX_NS / NS_PER_SEC), child->type->loss);
}

static void add_usage(struct child *child, const struct rusage *usage)
{
	uint64_t rss = (uint64_t)usage->ru_maxrss * 1024;

	child->usage.cpu_s += (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
			      (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;
	child->usage.rss_bytes = max_u64(child->usage.rss_bytes, rss);
}

/*
 * No child of this kind has ever worked, and none will. Where one has, as that
 * of another user, what keeps this one from its start may pass.
 */
static bool is_hopeless(const struct child *child, int status)
{
	return !child->broker->has_worked[child->type->kind] &&
	       (WIFEXITED(status) || child->failures + 1 >= FIRST_TRIES);
}

/* Said of the first: what keeps one from its start keeps others, too. */
static void end_all(struct broker *b, const struct child *child, const char *what)
{
	if (!b->failed)
		log_error("%s %s before it was ready: without it there is no "
			  "profile",
			  child->type->name, what);
	b->failed = true;
	broker_goes_on_to(b, BROKER_STOPS);
	b->hurried = true;
}

static void plan_restart(struct child *child, int status)
{
	char what[48];

	if (WIFSIGNALED(status))
		(void)snprintf(what, sizeof(what), "was ended by signal %d", WTERMSIG(status));
	else if (WEXITSTATUS(status) == SPAWN_FAILED)
		(void)snprintf(what, sizeof(what), "cannot be executed");
	else
		(void)snprintf(what, sizeof(what), "ended with status %d", WEXITSTATUS(status));
	if (is_hopeless(child, status)) {
		end_all(child->broker, child, what);
		return;
	}
	restarts_count(child->broker, child, status);
	child_failed(child, what);
}

static void child_died(struct child *child, int status, const struct rusage *usage)
{
	struct broker *b = child->broker;
	struct unwind *u = (struct unwind *)child;
	struct ship *s = (struct ship *)child;

	add_usage(child, usage);
	child->pid = 0;
	switch (child->type->kind) {
	case CHILD_CAPTURE:
		if (!b->capture_done)
			targets_capture_died(b, 0);
		break;
	case CHILD_UNWIND:
		close_fd(&u->link_fd);
		blame_died(b, u, status);
		targets_unwind_died(b, u);
		break;
	case CHILD_SHIP:
		past_ship_died(s);
		if (child->is_leaving)
			delivery_ship_gone(b, s);
		break;
	case CHILD_KIND_N:
		break;
	}
	if (child_is_wanted(child))
		plan_restart(child, status);
}

static struct child *child_of(struct broker *b, int32_t pid)
{
	struct child *child;

	for (size_t i = 0; (child = child_at(b, i)) != NULL; i++)
		if (child->pid == pid)
			break;
	return child;
}

/* Of ours or of discovery's; its time counts as ours. */
static void helper_reaped(struct broker *b, int32_t pid, const struct rusage *usage)
{
	static const struct rusage counted;

	files_reaped(b->files, pid, usage);
	if (b->discovery != NULL)
		discovery_reaped(b->discovery, pid, &counted);
}

void children_reap(struct broker *b)
{
	struct rusage usage;
	siginfo_t ended;
	int status;

	command_look(b);
	for (;;) {
		struct child *child;

		/* WNOWAIT: the pid is the child's until wait4 frees it. */
		ended.si_pid = 0;
		if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) < 0 || ended.si_pid == 0)
			return;
		child = child_of(b, ended.si_pid);
		if (child != NULL)
			child_take_last(child);
		if (wait4(ended.si_pid, &status, WNOHANG, &usage) <= 0)
			return;
		if (child != NULL)
			child_died(child, status, &usage);
		else if (ended.si_pid == b->command.pid)
			command_ended(&b->command, status);
		else if (!picture_reaped(&b->picture, ended.si_pid, status))
			helper_reaped(b, ended.si_pid, &usage);
	}
}

/* It was killed and does not die: we go on as if it had. */
static void give_up(struct child *child)
{
	static const struct rusage unknown;

	log_error("%s (pid %d) cannot be killed: it hangs in the kernel, and "
		  "until it is free nobody else can trace what it traced",
		  child->type->name, child->pid);
	child_take_last(child);
	child_died(child, SIGKILL, &unknown);
}

static void check_killed(struct child *child)
{
	if (child->pid != 0 && child->state >= CHILD_KILLED &&
	    clock_mono_ns() - child->killed_ns >= KILLED_MS * NS_PER_MS)
		give_up(child);
}

void children_check_killed(struct broker *b)
{
	struct child *child;

	for (size_t i = 0; (child = child_at(b, i)) != NULL; i++)
		check_killed(child);
}

/*
 * A child ends at the end of its socket. A ship still says what becomes of
 * chunks.
 */
static bool end_child(struct child *child)
{
	if (child->type->kind != CHILD_SHIP)
		child_close(child);
	else if (child->fd >= 0)
		(void)shutdown(child->fd, SHUT_WR);
	return child->pid != 0;
}

/* ship may have chunks to put on the disk; the others have nothing left. */
static bool is_over(const struct broker *b, struct patience *p)
{
	const uint64_t now = clock_mono_ns();
	bool works = false;

	for (size_t i = 0; i < b->n_ships && !works; i++) {
		int32_t pid = b->ships[i]->child.pid;

		works = pid != 0 && threads_any_runnable(pid);
	}

	return now >= patience_end_ns(p, now, works);
}

void children_end(struct broker *b)
{
	struct patience patience;
	struct child *child;

	broker_goes_on_to(b, BROKER_CLOSES);
	patience_start(&patience, clock_mono_ns());
	for (;;) {
		bool running = false;

		for (size_t i = 0; (child = child_at(b, i)) != NULL; i++)
			running |= end_child(child);
		if (!running)
			return;
		if (is_over(b, &patience))
			for (size_t i = 0; (child = child_at(b, i)) != NULL; i++)
				(void)child_kill(child);
		(void)!loop_run_once(b->loop, 100);
		children_reap(b);
		children_check_killed(b);
	}
}
