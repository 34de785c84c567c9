#include "lib/capture/crash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/capture/proc/status.h"
#include "lib/capture/record.h"
#include "lib/capture/state.h"
#include "lib/capture/stop.h"
#include "lib/capture/targets.h"
#include "lib/capture/tracees.h"

/*
 * The most ends of the tracing thread for crashes of one user's processes while there are other
 * targets: one in CRASH_APART_NS, and CRASHES_A_MINUTE in CRASH_MINUTE_NS.
 */
#define CRASH_APART_NS	NS_PER_SEC
#define CRASH_MINUTE_NS (60 * NS_PER_SEC)

/* For how long a process that was left is known. The caller knows of the crash much earlier. */
#define CRASH_LEFT_NS (10 * NS_PER_SEC)

static bool has_handler(const struct capture *c, uint32_t tid, int signal)
{
	return c->options.crashed != NULL && tracee_signal_crashes(signal) &&
	       status_catches(tid, signal);
}

bool crash_is_due(const struct thread *th, int signal)
{
	const struct traced_process *t = th->target;

	/* All crash signals are below 32. */
	return tracee_signal_crashes(signal) && (t->crash.ignored >> (signal - 1) & 1) == 0 &&
	       has_handler(t->capture, th->tid, signal);
}

/* Notes a process that was left; the oldest is replaced. */
static void note_left(struct capture *c, const struct left_process *left)
{
	c->left[c->next_left] = *left;
	c->left[c->next_left].ns = c->options.now_ns();
	c->next_left = (c->next_left + 1) % CRASH_LEFT;
}

bool crash_leave_child(struct capture *c, uint32_t tid, enum tracee_status status, int signal)
{
	if (status != TRACEE_SIGNAL || !has_handler(c, tid, signal) ||
	    ptrace(PTRACE_DETACH, tid, NULL, tracee_delivery(status, signal)) < 0)
		return false;
	note_left(c, &(struct left_process){
			     .pid = (int32_t)tid,
			     .is_child = true,
			     .crash = {.tid = tid, .signal = signal, .left = true},
		     });
	return true;
}

static struct left_process *find_left(struct capture *c, int32_t pid)
{
	for (size_t i = 0; i < CRASH_LEFT; i++)
		if (c->left[i].pid == pid && pid != 0 &&
		    c->options.now_ns() - c->left[i].ns < CRASH_LEFT_NS)
			return &c->left[i];
	return NULL;
}

bool crash_was_left(struct capture *c, int32_t pid)
{
	return find_left(c, pid) != NULL;
}

void crash_is_target_again(struct capture *c, int32_t pid)
{
	struct left_process *left = find_left(c, pid);

	if (left != NULL)
		left->pid = 0;
}

bool capture_child_has_crashed(struct capture *c, int32_t pid, struct capture_crash *ret)
{
	struct left_process *left = find_left(c, pid);

	if (left == NULL || !left->is_child)
		return false;
	*ret = left->crash;
	left->is_child = false;
	return true;
}

void crash_begin(const struct thread *th, int signal)
{
	struct traced_process *t = th->target;

	t->crash.now = (struct capture_crash){
		.tid = th->tid,
		.signal = signal,
		.awaits_exec = t->phase == TRACED_AWAITS_EXEC,
	};
	t->settling.cut = true;
	t->capture->crashing = t;
	t->capture->n_newborn = 0;
}

static void release_list(struct thread *list, bool go_on)
{
	for (struct thread *th = list; th != NULL; th = th->next) {
		const bool held = th->held.is;

		th->held.is = false;
		if (held && go_on)
			stop_continue(th->tid, th->held.status, th->held.signal,
				      th->resumed.state != RESUME_NONE ? PTRACE_SYSCALL
								       : PTRACE_CONT);
	}
}

static void release(struct traced_process *t, bool go_on)
{
	t->capture->crashing = NULL;
	t->crash.now = (struct capture_crash){0};
	t->settling.cut = false;
	release_list(t->threads.awake, go_on);
	release_list(t->threads.asleep, go_on);
}

void crash_give_up(struct traced_process *t)
{
	release(t, true);
}

void crash_is_void(struct traced_process *t)
{
	release(t, false);
}

void crash_runs_traced(struct traced_process *t)
{
	const struct capture_options *o = &t->capture->options;

	o->crashed(o->ctx, t->id, &t->crash.now);
	crash_give_up(t);
}

static bool interrupt_list(struct thread *list)
{
	bool all_held = true;

	for (struct thread *th = list; th != NULL; th = th->next) {
		if (th->held.is)
			continue;
		if (th->due == DUE_NOTHING) {
			if (ptrace(PTRACE_INTERRUPT, th->tid, NULL, NULL) == 0)
				tracees_expect_stop(th);
			/* A dead leader is there as long as its threads. Others are reaped. */
			else if (th->tid == (uint32_t)th->target->pid)
				continue;
		}
		all_held = false;
	}
	return all_held;
}

bool crash_interrupt(struct traced_process *t)
{
	const bool awake = interrupt_list(t->threads.awake);

	return interrupt_list(t->threads.asleep) && awake;
}

static bool has_runnable(const struct thread *list)
{
	struct activity_place ignored;

	for (const struct thread *th = list; th != NULL; th = th->next)
		if (!th->held.is && activity_look(&th->activity, &ignored) == ACTIVITY_RUNNING)
			return true;
	return false;
}

bool crash_may_wait(const struct traced_process *t, uint64_t began_ns, uint64_t stopped_ns)
{
	const uint64_t now_ns = t->capture->options.now_ns();

	if (now_ns - began_ns >= CRASH_HOLD_NS)
		return false;
	return now_ns - stopped_ns < CRASH_STOP_NS || has_runnable(t->threads.awake) ||
	       has_runnable(t->threads.asleep);
}

void crash_enter_handler(struct traced_process *t)
{
	struct thread *th = tracees_find(t->capture, t->crash.now.tid);

	th->held.is = false;
	(void)ptrace(PTRACE_INTERRUPT, th->tid, NULL, NULL);
	stop_continue(th->tid, th->held.status, th->held.signal, PTRACE_CONT);
}

bool crash_is_in_handler(struct traced_process *t)
{
	struct thread *th = tracees_find(t->capture, t->crash.now.tid);
	int status, signal;
	enum tracee_status kind;
	const pid_t r = tracee_wait((pid_t)th->tid, false, &status);

	if (r <= 0)
		return r < 0;
	kind = tracee_classify(status, &signal);
	if (kind == TRACEE_DEAD) {
		tracees_remove(th, MISSED_EXITED);
		return true;
	}
	stop_hold(th, kind, signal);
	t->crash.now.blocks_signal = status_blocks(th->tid, t->crash.now.signal);
	return true;
}

/* Returns false if the thread was killed: then waitpid(2) reports its death. */
static bool detach(struct thread *th)
{
	const bool held = th->held.is;

	th->held.is = false;
	return held && ptrace(PTRACE_DETACH, th->tid, NULL,
			      tracee_delivery(th->held.status, th->held.signal)) == 0;
}

static void detach_list(struct thread *list, uint32_t but_tid)
{
	for (struct thread *th = list; th != NULL; th = th->next)
		if (th->tid != but_tid)
			(void)detach(th);
}

/*
 * Detaches from a thread that is not in the table. Returns false if it is traced and has not
 * stopped yet.
 */
static bool detach_unknown(struct traced_process *t, uint32_t tid)
{
	int status;
	pid_t r;

	if (tracees_find(t->capture, tid) != NULL)
		return true;
	r = tracee_wait((pid_t)tid, false, &status);
	if (r > 0)
		(void)ptrace(PTRACE_DETACH, tid, NULL, NULL);
	return r != 0;
}

/*
 * Goes through /proc/PID/task with memory that exists. Returns false if a thread that the kernel
 * has attached has not stopped yet.
 */
static bool detach_all_unknown(struct traced_process *t, int fd)
{
	union {
		struct dirent64 entry;
		char bytes[4096];
	} list;
	bool all = true;
	ssize_t n;

	while ((n = getdents64(fd, &list, sizeof(list))) > 0) {
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *entry = (const void *)(list.bytes + at);
			const unsigned long tid = strtoul(entry->d_name, NULL, 10);

			at += entry->d_reclen;
			if (tid > 0 && tid <= INT32_MAX)
				all &= detach_unknown(t, (uint32_t)tid);
		}
	}
	return all;
}

/* The longest wait for the first stops of new threads, each of which takes microseconds. */
#define UNKNOWN_PASSES 200
#define UNKNOWN_NAP_NS (50 * NS_PER_US)

/*
 * Detaches from threads that were born just before the crash: the kernel has attached them, and
 * their first stop was not handled yet.
 */
static void detach_newborn(struct traced_process *t)
{
	const struct timespec nap = {.tv_nsec = UNKNOWN_NAP_NS};
	int fd = openat(t->proc_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int n = 0; fd >= 0 && n < UNKNOWN_PASSES && !detach_all_unknown(t, fd); n++) {
		(void)nanosleep(&nap, NULL);
		state_beat(t);
		(void)lseek(fd, 0, SEEK_SET);
	}
	close_fd(&fd);
}

/* The directory has a link for each thread and two of its own. */
static bool has_unknown(const struct traced_process *t)
{
	struct stat st;

	return fstat(t->task_fd, &st) == 0 &&
	       st.st_nlink > 2 + t->threads.n + t->scan.n_left_out + t->scan.n_refused;
}

/* The process is left. capture_remove may have been called before: then it is not a crash. */
static void end(struct traced_process *t)
{
	const bool leaves = t->phase == TRACED_DETACHING;
	const uint64_t n_threads = t->threads.n;

	tracees_give_up_samples(t, MISSED_NOT_STOPPED);
	tracees_forget_all(t);
	/* All samples are written, so the reader can end its chunk here. */
	(void)record_tick(t, t->ticks.span.last, t->ticks.span.last_ns);
	(void)record_event(t, RECORD_RESET, 0, t->ticks.span.last, record_time(t));
	targets_end(t, leaves ? TRACED_END_GONE : TRACED_END_CRASH);
	if (leaves)
		return;
	note_left(t->capture, &(struct left_process){.pid = t->pid});
	t->crash.now.left = true;
	/* The number of threads that have no samples from now on. */
	t->counters->threads = n_threads;
}

void crash_detach(struct traced_process *t)
{
	struct thread *crashed = tracees_find(t->capture, t->crash.now.tid);
	struct thread *leader = tracees_find(t->capture, (uint32_t)t->pid);
	const bool unknown = has_unknown(t);

	t->capture->crashing = NULL;
	if (leader != NULL && leader != crashed)
		(void)detach(leader);
	detach_list(t->threads.asleep, t->crash.now.tid);
	detach_list(t->threads.awake, t->crash.now.tid);
	if (unknown)
		detach_newborn(t);
	if (crashed != NULL && detach(crashed)) {
		end(t);
		return;
	}
	tracees_forget_all(t);
	crash_give_up(t);
}

static struct crash_user *user_of(struct capture *c, uint32_t uid)
{
	struct crash_user *oldest = c->crash_users;

	for (size_t i = 0; i < c->n_crash_users; i++) {
		struct crash_user *u = &c->crash_users[i];

		if (u->uid == uid)
			return u;
		if (u->ns[(u->next + CRASHES_A_MINUTE - 1) % CRASHES_A_MINUTE] <
		    oldest->ns[(oldest->next + CRASHES_A_MINUTE - 1) % CRASHES_A_MINUTE])
			oldest = u;
	}
	if (c->n_crash_users < CRASH_USERS)
		oldest = &c->crash_users[c->n_crash_users++];
	*oldest = (struct crash_user){.uid = uid};
	return oldest;
}

bool crash_may_end_tracer(struct traced_process *t)
{
	struct capture *c = t->capture;
	const uint64_t now = c->options.now_ns();
	struct crash_user *u;
	uint64_t last, tenth;

	if (c->n_targets == 1)
		return true;
	u = user_of(c, t->exec.uid);
	last = u->ns[(u->next + CRASHES_A_MINUTE - 1) % CRASHES_A_MINUTE];
	tenth = u->ns[u->next];
	if ((last != 0 && now - last < CRASH_APART_NS) ||
	    (tenth != 0 && now - tenth < CRASH_MINUTE_NS))
		return false;
	u->ns[u->next] = now;
	u->next = (u->next + 1) % CRASHES_A_MINUTE;
	return true;
}

void crash_tracer_ended(struct traced_process *t)
{
	t->capture->crashing = NULL;
	end(t);
}
