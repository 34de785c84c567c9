#include "lib/capture/target.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/time.h>

#include "lib/base/procfs.h"
#include "lib/capture/proc/status.h"

/* Passes over the task directory while threads keep coming. */
#define SCAN_PASSES_MAX 64

/*
 * An execve(2) that nothing holds up keeps others from attaching for less than
 * a millisecond.
 */
#define SEIZE_WAIT_US 2000

/*
 * After a scan that was held up, ticks until the next: 1, 2, 4, up to this. A
 * program that is read from a file system that hangs takes 0.2 % of the time.
 */
#define HELD_UP_TICKS_MAX 128

/*
 * A thread takes 20 to 50 us to attach to: tens of thousands take a second, in
 * which nobody else would have a tick. So a scan gives way after this time, and
 * goes on after that pause. The first one of a target may take longer, since it
 * comes once.
 */
#define SCAN_FIRST_NS (100 * NS_PER_MS)
#define SCAN_NS	      (5 * NS_PER_MS)
#define SCAN_PAUSE_NS (3 * SCAN_NS)

struct thread_status {
	char state;
	uint32_t tracer;
};

/* Name, the first line, is the target's: it cannot hold a newline. */
static enum proc_outcome read_status(const struct target *t, uint32_t tid,
				     struct thread_status *ret)
{
	static const char state_key[] = "\nState:\t";
	char path[64], text[PROCFS_TEXT_MAX];
	uint64_t tracer;
	const char *state;
	enum proc_outcome outcome;

	(void)snprintf(path, sizeof(path), "task/%u/status", tid);
	outcome = proc_read_text(t->proc_fd, path, text, sizeof(text));
	if (outcome != PROC_READ)
		return outcome;
	state = strstr(text, state_key);
	if (state == NULL || procfs_numbers(text, "\nTracerPid:", 10, &tracer, 1) == 0) {
		errno = EPROTO;
		return PROC_LACK;
	}
	ret->state = state[sizeof(state_key) - 1];
	ret->tracer = (uint32_t)tracer;
	return PROC_READ;
}

/* A leader whose threads live on, or one that is not reaped yet. */
static bool is_dead(const struct thread_status *status)
{
	return status->state == 'Z' || status->state == 'X';
}

/*
 * PTRACE_SEIZE waits while a thread of the process is in execve(2), which waits
 * until the other threads are dead and, where we trace them, reaped by us: each
 * would wait for the other. A signal interrupts that, but the kernel takes the
 * wait up again when its handler returns (-ERESTARTNOINTR of ptrace_attach,
 * kernel/ptrace.c). So the handler does not return.
 */
static sigjmp_buf waited_enough;

static void on_alarm(int signal)
{
	(void)signal;
	siglongjmp(waited_enough, 1);
}

struct alarm {
	struct sigaction action;
	sigset_t mask;
};

/* For the time of a scan SIGALRM is ours. */
static void alarm_take(struct alarm *ret_before)
{
	const struct sigaction action = {.sa_handler = on_alarm};
	sigset_t set;

	(void)sigaction(SIGALRM, &action, &ret_before->action);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	(void)sigprocmask(SIG_UNBLOCK, &set, &ret_before->mask);
}

static void alarm_give_back(const struct alarm *before)
{
	(void)sigprocmask(SIG_SETMASK, &before->mask, NULL);
	(void)sigaction(SIGALRM, &before->action, NULL);
}

/*
 * PTRACE_SEIZE that waits for SEIZE_WAIT_US at most. -EINTR then, and when the
 * time is over just as it has succeeded: TracerPid tells. The alarm can come
 * nowhere but in these three system calls, where a jump leaves nothing undone.
 */
static int seize_in_time(const struct target *t, uint32_t tid)
{
	const struct itimerval wait = {.it_value.tv_usec = SEIZE_WAIT_US};
	const struct itimerval never = {.it_value.tv_usec = 0};
	int r;

	if (sigsetjmp(waited_enough, 1) != 0)
		return -EINTR;
	(void)setitimer(ITIMER_REAL, &wait, NULL);
	r = ptrace(PTRACE_SEIZE, tid, NULL, target_options(t, tid)) == 0 ? 0 : -errno;
	(void)setitimer(ITIMER_REAL, &never, NULL);
	return r;
}

/* What has become of a thread that is to be attached to. */
enum seize_end {
	SEIZE_DONE,
	SEIZE_GONE,	/* the process has no thread of this number any more */
	SEIZE_LEFT_OUT, /* it is dead, or dies, or is the kernel's own */
	SEIZE_HELD_UP,	/* PTRACE_SEIZE takes long, perhaps because of an exec */
	SEIZE_REFUSED,	/* by the kernel, or by another tracer: pass.error */
	SEIZE_LACK,	/* of descriptors or memory: pass.error */
};

static enum seize_end end_with(struct target *t, enum seize_end end, int error)
{
	t->pass.error = error;
	return end;
}

/* Makes sure that we trace a thread. */
static enum seize_end seize(struct target *t, uint32_t tid)
{
	struct thread_status status;
	int error = 0;

	for (;;) {
		switch (read_status(t, tid, &status)) {
		case PROC_READ:
			break;
		case PROC_GONE:
			return SEIZE_GONE;
		case PROC_LACK:
			return end_with(t, SEIZE_LACK, -errno);
		}
		if (is_dead(&status))
			return SEIZE_LEFT_OUT;
		/* The kernel was first: PTRACE_O_TRACECLONE. */
		if (status.tracer == (uint32_t)gettid())
			return SEIZE_DONE;
		if (status.tracer != 0)
			return end_with(t, SEIZE_REFUSED, -EBUSY);
		if (tid == (uint32_t)t->pid && target_leader_dies(t)) {
			t->pass.dying = true;
			return SEIZE_LEFT_OUT;
		}
		if (error == -EINTR)
			return SEIZE_HELD_UP;
		if (error < 0)
			return end_with(t, SEIZE_REFUSED, error);
		switch (status_is_worker(tid)) {
		case PROC_NO:
			break;
		case PROC_YES:
			return SEIZE_LEFT_OUT;
		case PROC_UNKNOWN:
			return end_with(t, SEIZE_LACK, -errno);
		}
		error = seize_in_time(t, tid);
		if (error == 0)
			return SEIZE_DONE;
	}
}

/* SEIZE_DONE: it is known now. */
static enum seize_end attach(struct target *t, uint32_t tid)
{
	const enum seize_end end = seize(t, tid);
	int r;

	if (end != SEIZE_DONE)
		return end;
	/* It may be that of a new program, and the old one was not known. */
	if (t->phase != TARGET_APART && tid == (uint32_t)t->pid)
		target_look_for_exec(t);
	r = target_adopt(t, tid);
	/*
	 * One that we trace is there until we reap it, dead or alive. But the
	 * exec that PTRACE_SEIZE has waited for made it the leader.
	 */
	if (r == -ESRCH)
		return SEIZE_GONE;
	if (r < 0)
		return end_with(t, SEIZE_LACK, r);
	capture_thread(t->capture, tid)->may_dump = true;
	/* One that a target has forked may have those of its parent. */
	capture_thread(t->capture, tid)->options_due = t->capture->options.born != NULL;
	return SEIZE_DONE;
}

void target_end_pass(struct target *t)
{
	if (t->pass.dir != NULL)
		(void)closedir(t->pass.dir);
	t->pass = (struct target_pass){0};
}

static int begin_pass(struct target *t)
{
	int fd, r;

	r = proc_error(proc_open(t->proc_fd, "task", O_RDONLY | O_DIRECTORY, &fd));
	if (r < 0)
		return r;
	t->pass = (struct target_pass){.dir = fdopendir(fd)};
	if (t->pass.dir == NULL) {
		close_fd(&fd);
		return -ENOMEM;
	}
	return 0;
}

/* A thread of the directory. False if the pass is held up there. */
static bool pass_by(struct target *t, uint32_t tid)
{
	struct target_pass *pass = &t->pass;
	enum seize_end end;

	if (capture_thread(t->capture, tid) != NULL)
		return true;
	/* The next lacks the same, and would be traced and not known. */
	end = pass->lacks ? SEIZE_LACK : attach(t, tid);
	/* Thousands of them take longer than a beat may. */
	target_beat(t);
	switch (end) {
	case SEIZE_DONE:
		pass->found++;
		return true;
	case SEIZE_GONE:
		pass->vanished = true;
		return true;
	case SEIZE_LEFT_OUT:
		pass->left_out++;
		return true;
	case SEIZE_LACK:
		pass->lacks = true;
		pass->refused++;
		return true;
	case SEIZE_REFUSED:
		pass->refused++;
		return true;
	case SEIZE_HELD_UP:
		break;
	}
	return false;
}

/* What has become of a pass. */
enum pass_end {
	PASS_DONE,
	PASS_TIME_OVER, /* it is to go on later */
	PASS_HELD_UP,	/* by an exec, it may be: the next begins anew */
	PASS_FAILED,	/* the directory cannot be read: pass.error */
};

/* One pass over the task directory, or what is left of it. */
static enum pass_end make_pass(struct target *t, uint64_t until_ns)
{
	struct dirent *entry;
	int r;

	if (t->pass.dir == NULL) {
		r = begin_pass(t);
		t->pass.error = r;
		t->pass.lacks = r < 0 && r != -ESRCH;
		if (r < 0)
			return PASS_FAILED;
	}
	while ((entry = readdir(t->pass.dir)) != NULL) {
		unsigned long tid = strtoul(entry->d_name, NULL, 10);

		if (tid == 0 || tid > INT32_MAX)
			continue;
		t->pass.has_leader |= tid == (unsigned long)t->pid;
		if (!pass_by(t, (uint32_t)tid))
			return PASS_HELD_UP;
		if (t->capture->options.now_ns() >= until_ns)
			return PASS_TIME_OVER;
	}
	/*
	 * It is there, be it dead. An exec at the wrong moment makes it another
	 * one, and the kernel's listing ends at the one that it was.
	 */
	t->pass.vanished |= !t->pass.has_leader;
	return PASS_DONE;
}

/* Comes back at a tick to come, when what is dead will have been reaped. */
static void held_up(struct target *t)
{
	t->held_up_ticks = t->held_up_ticks == 0 ? 1 : 2 * t->held_up_ticks;
	t->held_up_ticks = min_u64(t->held_up_ticks, HELD_UP_TICKS_MAX);
	t->scan_tick = t->last_tick + t->held_up_ticks;
}

/* Goes on with the pass after a pause. */
static void put_off(struct target *t)
{
	t->held_up_ticks = 1;
	t->scan_tick = t->last_tick + 1;
	t->scan_ns = t->last_ns + SCAN_PAUSE_NS;
}

int target_scan(struct target *t)
{
	const uint64_t until_ns =
		t->capture->options.now_ns() + (t->phase == TARGET_APART ? SCAN_FIRST_NS : SCAN_NS);
	const size_t before = t->n_threads;
	struct alarm alarm;
	enum pass_end end = PASS_DONE;
	bool dying = false, lacks = false;
	int error = 0;

	alarm_take(&alarm);
	/*
	 * A thread that is not seized yet can make others unseen by us, or
	 * become the leader by an exec.
	 */
	for (int n = 0; n < SCAN_PASSES_MAX; n++) {
		bool again;

		end = make_pass(t, until_ns);
		if (t->pass.error < 0)
			error = t->pass.error;
		lacks = t->pass.lacks;
		if (end == PASS_TIME_OVER)
			break;
		/* It is dead, or its exec has made it the leader. */
		if (t->pass.vanished)
			target_look_for_exec(t);
		again = t->pass.found > 0 || t->pass.vanished;
		dying = t->pass.dying;
		if (end == PASS_DONE) {
			t->n_refused = t->pass.refused;
			t->n_left_out = t->pass.left_out;
			t->refused_error = t->pass.error;
		}
		target_end_pass(t);
		if (end != PASS_DONE || !again)
			break;
	}
	alarm_give_back(&alarm);
	/*
	 * The process has not ended before it is dead, nor because it cannot be
	 * looked at. But of a first look that fails the caller is told.
	 */
	if (t->n_threads == 0 &&
	    ((end == PASS_DONE && dying) || (lacks && t->phase != TARGET_APART)))
		end = PASS_HELD_UP;
	t->held_up_ticks = end == PASS_HELD_UP ? t->held_up_ticks : 0;
	if (end == PASS_HELD_UP)
		held_up(t);
	else if (end == PASS_TIME_OVER && (t->n_threads > 0 || error == 0))
		put_off(t);
	if (t->n_threads > 0 || t->held_up_ticks > 0)
		return t->n_threads > before ? (int)(t->n_threads - before) : 0;
	target_end_pass(t);
	return error;
}

/*
 * While we wait for a processor that time is over without a cause. A thread
 * that is not seized by then is left to the next scan.
 */
#define SEIZE_TRIES 4

static void seize_again(struct target *t, struct thread *th)
{
	enum seize_end end = SEIZE_GONE;

	if (target_has(t, th->tid))
		end = seize_in_time(t, th->tid) == 0 ? SEIZE_DONE : SEIZE_HELD_UP;
	for (int n = 1; end == SEIZE_HELD_UP && n < SEIZE_TRIES; n++)
		end = seize(t, th->tid);
	switch (end) {
	case SEIZE_DONE:
		thread_begin_again(th);
		return;
	case SEIZE_GONE:
	case SEIZE_LEFT_OUT:
		thread_remove(th, MISSED_EXITED);
		return;
	case SEIZE_HELD_UP:
	case SEIZE_REFUSED:
	case SEIZE_LACK:
		thread_remove(th, MISSED_NOT_ATTACHED);
		return;
	}
}

static void seize_list_again(struct target *t, struct thread *list)
{
	struct thread *next;

	for (struct thread *th = list; th != NULL; th = next) {
		next = th->next;
		target_beat(t);
		seize_again(t, th);
	}
}

void target_seize_again(struct target *t)
{
	struct alarm alarm;

	alarm_take(&alarm);
	seize_list_again(t, t->asleep);
	seize_list_again(t, t->awake);
	alarm_give_back(&alarm);
}

enum proc_answer target_lost_leader(const struct target *t)
{
	struct thread_status status;

	if (capture_thread(t->capture, (uint32_t)t->pid) == NULL)
		return PROC_NO;
	switch (read_status(t, (uint32_t)t->pid, &status)) {
	case PROC_READ:
		return !is_dead(&status) && status.tracer != (uint32_t)gettid() ? PROC_YES
										: PROC_NO;
	case PROC_GONE:
		return PROC_NO;
	case PROC_LACK:
		break;
	}
	return PROC_UNKNOWN;
}
