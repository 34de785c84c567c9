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

#include "lib/base/small_file.h"
#include "lib/capture/status.h"

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
static int read_status(const struct target *t, uint32_t tid,
		       struct thread_status *ret)
{
	static const char state_key[] = "\nState:\t";
	static const char tracer_key[] = "\nTracerPid:\t";
	char path[64], text[4096];
	const char *state, *tracer;
	int r;

	(void)snprintf(path, sizeof(path), "task/%u/status", tid);
	r = small_file_read(t->proc_fd, path, text, sizeof(text));
	if (r < 0)
		return r == -ESRCH ? -ENOENT : r;
	state = strstr(text, state_key);
	tracer = strstr(text, tracer_key);
	if (state == NULL || tracer == NULL)
		return -EPROTO;
	ret->state = state[sizeof(state_key) - 1];
	ret->tracer =
		(uint32_t)strtoul(tracer + sizeof(tracer_key) - 1, NULL, 10);
	return 0;
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
	r = ptrace(PTRACE_SEIZE, tid, NULL, target_options(t, tid)) == 0
		    ? 0
		    : -errno;
	(void)setitimer(ITIMER_REAL, &never, NULL);
	return r;
}

static int left_out(struct target *t)
{
	t->pass.left_out++;
	return -ESRCH;
}

/*
 * Makes sure that we trace a thread. Returns 0, -ESRCH if it is dead, or one of
 * the kernel's, which has no code and no stack of the program, -ENOENT if there
 * is none of this number, -EBUSY, -EPERM, -EINTR if the process is in the
 * middle of an exec.
 */
static int seize(struct target *t, uint32_t tid)
{
	struct thread_status status;
	int r, error = 0;

	for (;;) {
		r = read_status(t, tid, &status);
		t->renamed |= r == -ENOENT && error == -EINTR;
		if (r < 0)
			return r;
		/* A leader whose threads live on, or not reaped yet. */
		if (status.state == 'Z' || status.state == 'X')
			return left_out(t);
		/* The kernel was first: PTRACE_O_TRACECLONE. */
		if (status.tracer == (uint32_t)gettid())
			return 0;
		if (status.tracer != 0)
			return -EBUSY;
		if (tid == (uint32_t)t->pid && target_leader_dies(t)) {
			t->pass.dying = true;
			return left_out(t);
		}
		if (error < 0)
			return error;
		if (status_is_worker(tid))
			return left_out(t);
		error = seize_in_time(t, tid);
		if (error == 0)
			return 0;
	}
}

/* Returns 1 if the thread is new and known now, 0 if there is nothing to do. */
static int attach(struct target *t, uint32_t tid)
{
	int r = seize(t, tid);

	t->pass.vanished |= r == -ENOENT;
	if (r == -ENOENT)
		return 0;
	if (r == 0 && t->added && tid == (uint32_t)t->pid)
		target_executed(t);
	if (r == 0)
		r = target_adopt(t, tid);
	if (r == 0)
		capture_thread(t->capture, tid)->may_dump = true;
	/*
	 * One that we trace is there until we reap it, dead or alive. But the
	 * exec that PTRACE_SEIZE has waited for made it the leader.
	 */
	t->renamed |= r == -ENOENT;
	if (r == -ENOENT || r == -ESRCH)
		return 0;
	return r == 0 ? 1 : r;
}

void target_end_pass(struct target *t)
{
	if (t->pass.dir != NULL)
		(void)closedir(t->pass.dir);
	t->pass = (struct target_pass){0};
}

static int begin_pass(struct target *t)
{
	int fd;

	fd = openat(t->proc_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	t->pass = (struct target_pass){.dir = fdopendir(fd)};
	if (t->pass.dir == NULL) {
		close_fd(&fd);
		return -ENOMEM;
	}
	return 0;
}

/* A thread of the directory. -EINTR if an exec is under way. */
static int pass_by(struct target *t, uint32_t tid)
{
	struct target_pass *pass = &t->pass;
	int r;

	if (capture_thread(t->capture, tid) != NULL)
		return 0;
	/* The next has no room either, and would be traced and not known. */
	r = pass->full ? pass->error : attach(t, tid);
	/* Thousands of them take longer than a beat may. */
	target_beat(t);
	if (r > 0)
		pass->found++;
	if (r >= 0 || r == -EINTR)
		return r;
	pass->full |= r == -EMFILE || r == -ENFILE;
	pass->refused++;
	pass->error = r;
	return 0;
}

/*
 * One pass over the task directory, or what is left of it. Returns 0 at its
 * end, -EAGAIN if the time was over before, -EINTR if an exec is under way, or
 * that of a directory which cannot be read.
 */
static int make_pass(struct target *t, uint64_t until_ns)
{
	struct dirent *entry;
	int r;

	if (t->pass.dir == NULL) {
		r = begin_pass(t);
		if (r < 0)
			return r;
	}
	while ((entry = readdir(t->pass.dir)) != NULL) {
		unsigned long tid = strtoul(entry->d_name, NULL, 10);

		if (tid == 0 || tid > INT32_MAX)
			continue;
		t->pass.has_leader |= tid == (unsigned long)t->pid;
		r = pass_by(t, (uint32_t)tid);
		if (r == -EINTR)
			return r;
		if (t->capture->options.now_ns() >= until_ns)
			return -EAGAIN;
	}
	/*
	 * It is there, be it dead. An exec at the wrong moment makes it another
	 * one, and the kernel's listing ends at the one that it was.
	 */
	t->pass.vanished |= !t->pass.has_leader;
	return 0;
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
	const uint64_t until_ns = t->capture->options.now_ns() +
				  (t->added ? SCAN_NS : SCAN_FIRST_NS);
	const size_t before = t->n_threads;
	struct alarm alarm;
	bool dying = false;
	int r = 0, error = 0;

	alarm_take(&alarm);
	/*
	 * A thread that is not seized yet can make others unseen by us, or
	 * become the leader by an exec.
	 */
	for (int n = 0; n < SCAN_PASSES_MAX; n++) {
		bool again;

		r = make_pass(t, until_ns);
		if (t->pass.error < 0)
			error = t->pass.error;
		if (t->renamed) {
			/* The next pass finds it, and whoever else is there. */
			target_forget_threads(t);
			t->renamed = false;
			target_end_pass(t);
			continue;
		}
		if (r == -EAGAIN)
			break;
		again = t->pass.found > 0 || t->pass.vanished;
		dying = t->pass.dying;
		if (r == 0) {
			t->n_refused = t->pass.refused;
			t->n_left_out = t->pass.left_out;
			t->refused_error = t->pass.error;
		}
		target_end_pass(t);
		if (r < 0 || !again)
			break;
	}
	alarm_give_back(&alarm);
	/* The process has not ended before it is dead. */
	if (r == 0 && dying && t->n_threads == 0)
		r = -EINTR;
	t->held_up_ticks = r == -EINTR ? t->held_up_ticks : 0;
	if (r == -EINTR)
		held_up(t);
	else if (r == -EAGAIN && (t->n_threads > 0 || error == 0))
		put_off(t);
	else if (r < 0 && r != -EAGAIN)
		error = r;
	if (t->n_threads > 0 || t->held_up_ticks > 0)
		return t->n_threads > before ? (int)(t->n_threads - before) : 0;
	target_end_pass(t);
	return error;
}

/*
 * While we wait for a processor that time is over without a cause, and who is
 * not seized again is taken for one that has ended.
 */
#define SEIZE_TRIES 4

static bool seize_again(struct target *t, uint32_t tid)
{
	int r = target_has(t, tid) ? seize_in_time(t, tid) : -ESRCH;

	for (int n = 1; r == -EINTR && n < SEIZE_TRIES; n++)
		r = seize(t, tid);
	return r == 0;
}

static void seize_list_again(struct target *t, struct thread *list)
{
	struct thread *next;

	for (struct thread *th = list; th != NULL; th = next) {
		next = th->next;
		target_beat(t);
		if (seize_again(t, th->tid))
			thread_begin_again(th);
		else
			thread_remove(th, MISSED_EXITED);
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

/*
 * A thread that we do not trace has called exec, and is the leader now: the
 * one that we knew is gone without a word (ptrace(2), "execve(2) under
 * ptrace").
 */
bool target_lost_leader(const struct target *t)
{
	struct thread_status status;

	return capture_thread(t->capture, (uint32_t)t->pid) != NULL &&
	       read_status(t, (uint32_t)t->pid, &status) == 0 &&
	       status.state != 'Z' && status.state != 'X' &&
	       status.tracer != (uint32_t)gettid();
}
