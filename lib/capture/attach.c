#include "lib/capture/attach.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/capture/exec.h"
#include "lib/capture/proc/proc.h"
#include "lib/capture/proc/status.h"
#include "lib/capture/seize.h"
#include "lib/capture/sleepers.h"
#include "lib/capture/state.h"
#include "lib/capture/stop.h"
#include "lib/capture/tracees.h"

/* The most passes over the task directory while threads keep coming. */
#define SCAN_PASSES_MAX 64

/*
 * The wait after a scan that was held up: 1, 2, 4 ticks and so on, up to this. So the retries for a
 * program that is read from a hanging file system take 0.2 % of the time.
 */
#define HELD_UP_TICKS_MAX 128

/*
 * The longest time of a scan. Attaching to a thread takes 20 to 50 us, so tens of thousands of
 * threads take a second, in which other targets would have no tick. After this time the scan
 * pauses, and goes on later. The first scan of a target may take longer, because there is only one.
 */
#define SCAN_FIRST_NS (100 * NS_PER_MS)
#define SCAN_NS	      (5 * NS_PER_MS)
#define SCAN_PAUSE_NS (3 * SCAN_NS)

/* The outcome for one thread. */
enum seize_end {
	SEIZE_DONE,
	SEIZE_GONE,	/* the process has no such thread any more */
	SEIZE_LEFT_OUT, /* it is dead or dying, or is a thread of the kernel */
	SEIZE_HELD_UP,	/* PTRACE_SEIZE reached its time limit, perhaps because of an exec */
	SEIZE_REFUSED,	/* by the kernel, or another tracer has it: pass.error */
	SEIZE_LACK,	/* lack of descriptors or memory: pass.error */
};

static enum seize_end fail_with(struct traced_process *t, enum seize_end end, int error)
{
	t->scan.pass.error = error;
	return end;
}

/* Seizes a thread, unless capture traces it already, or traces no thread. */
static enum seize_end seize(struct traced_process *t, uint32_t tid)
{
	struct status_state state;
	int error = 0;

	for (;;) {
		switch (status_read_state(t->proc_fd, tid, &state)) {
		case PROC_READ:
			break;
		case PROC_GONE:
			return SEIZE_GONE;
		case PROC_LACK:
			return fail_with(t, SEIZE_LACK, -errno);
		}
		if (status_is_dead(&state))
			return SEIZE_LEFT_OUT;
		if (t->capture->options.perf != NULL)
			return status_is_worker(tid) == PROC_YES ? SEIZE_LEFT_OUT : SEIZE_DONE;
		/* The kernel has attached it already: PTRACE_O_TRACECLONE. */
		if (state.tracer == (uint32_t)gettid())
			return SEIZE_DONE;
		if (state.tracer != 0)
			return fail_with(t, SEIZE_REFUSED, -EBUSY);
		if (tid == (uint32_t)t->pid && exec_leader_dies(t)) {
			t->scan.pass.dying = true;
			return SEIZE_LEFT_OUT;
		}
		if (error == -EINTR)
			return SEIZE_HELD_UP;
		if (error < 0)
			return fail_with(t, SEIZE_REFUSED, error);
		switch (status_is_worker(tid)) {
		case PROC_NO:
			break;
		case PROC_YES:
			return SEIZE_LEFT_OUT;
		case PROC_UNKNOWN:
			return fail_with(t, SEIZE_LACK, -errno);
		}
		error = seize_thread(tid, tracees_options(t, tid));
		if (error == 0)
			return SEIZE_DONE;
	}
}

/* Seizes a thread and adds it to the table. After SEIZE_DONE the thread is in the table. */
static enum seize_end attach(struct traced_process *t, uint32_t tid)
{
	const enum seize_end end = seize(t, tid);
	int r;

	if (end != SEIZE_DONE)
		return end;
	/* The leader may belong to a new program, if the old leader was not in the table. */
	if (t->phase != TRACED_NEW && tid == (uint32_t)t->pid)
		exec_check(t);
	r = tracees_adopt(t, tid);
	/*
	 * A traced thread exists until capture reaps it. -ESRCH means that the exec for which
	 * PTRACE_SEIZE has waited may have made the thread the leader, under another number.
	 */
	if (r == -ESRCH)
		return SEIZE_GONE;
	if (r < 0)
		return fail_with(t, SEIZE_LACK, r);
	if (t->capture->options.perf != NULL)
		return SEIZE_DONE;
	stop_note_seized(tracees_find(t->capture, tid));
	/* A thread of a forked child may have the ptrace options of its parent. */
	tracees_find(t->capture, tid)->options_due = t->capture->options.born != NULL;
	return SEIZE_DONE;
}

void attach_end_pass(struct traced_process *t)
{
	if (t->scan.pass.dir != NULL)
		(void)closedir(t->scan.pass.dir);
	t->scan.pass = (struct scan_pass){0};
}

static int begin_pass(struct traced_process *t)
{
	int fd, r;

	r = proc_error(proc_open(t->proc_fd, "task", O_RDONLY | O_DIRECTORY, &fd));
	if (r < 0)
		return r;
	t->scan.pass = (struct scan_pass){.dir = fdopendir(fd)};
	if (t->scan.pass.dir == NULL) {
		close_fd(&fd);
		return -ENOMEM;
	}
	return 0;
}

/* Handles one thread of the task directory. Returns false if the pass is held up. */
static bool handle_listed(struct traced_process *t, uint32_t tid)
{
	struct scan_pass *pass = &t->scan.pass;
	enum seize_end end;

	if (tracees_find(t->capture, tid) != NULL)
		return true;
	/*
	 * After a lack of descriptors or memory no further thread is seized: it would be traced
	 * without being in the table.
	 */
	end = pass->lacks ? SEIZE_LACK : attach(t, tid);
	/* Thousands of threads take longer than the heartbeat's period. */
	state_beat(t);
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

/* The outcome of a pass. */
enum pass_end {
	PASS_DONE,
	PASS_TIME_OVER, /* the pass goes on later */
	PASS_HELD_UP,	/* perhaps by an exec: the next pass begins anew */
	PASS_FAILED,	/* the directory cannot be read: pass.error */
};

/* Makes one pass over the task directory, or the rest of one. */
static enum pass_end make_pass(struct traced_process *t, uint64_t until_ns)
{
	struct dirent *entry;
	int r;

	if (t->scan.pass.dir == NULL) {
		r = begin_pass(t);
		t->scan.pass.error = r;
		t->scan.pass.lacks = r < 0 && r != -ESRCH;
		if (r < 0)
			return PASS_FAILED;
	}
	while ((entry = readdir(t->scan.pass.dir)) != NULL) {
		unsigned long tid = strtoul(entry->d_name, NULL, 10);

		if (tid == 0 || tid > INT32_MAX)
			continue;
		t->scan.pass.has_leader |= tid == (unsigned long)t->pid;
		if (!handle_listed(t, (uint32_t)tid))
			return PASS_HELD_UP;
		if (t->capture->options.now_ns() >= until_ns)
			return PASS_TIME_OVER;
	}
	/*
	 * The directory always has the leader, even a dead one. If it is missing, an exec has
	 * replaced the leader during the listing, and the kernel has ended the listing at the old
	 * one.
	 */
	t->scan.pass.vanished |= !t->scan.pass.has_leader;
	return PASS_DONE;
}

/* The scan is repeated at a later tick, when the dead threads will have been reaped. */
static void repeat_later(struct traced_process *t)
{
	t->scan.held_up_ticks = t->scan.held_up_ticks == 0 ? 1 : 2 * t->scan.held_up_ticks;
	t->scan.held_up_ticks = min_u64(t->scan.held_up_ticks, HELD_UP_TICKS_MAX);
	t->scan.tick = t->ticks.span.last + t->scan.held_up_ticks;
}

/* The pass goes on after a pause. */
static void go_on_later(struct traced_process *t)
{
	t->scan.held_up_ticks = 1;
	t->scan.tick = t->ticks.span.last + 1;
	t->scan.not_before = t->ticks.span.last_ns + SCAN_PAUSE_NS;
}

int attach_scan(struct traced_process *t)
{
	const uint64_t until_ns =
		t->capture->options.now_ns() + (t->phase == TRACED_NEW ? SCAN_FIRST_NS : SCAN_NS);
	const size_t before = t->threads.n;
	struct seize alarm;
	enum pass_end end = PASS_DONE;
	bool dying = false, lacks = false;
	int error = 0;

	if (t->capture->options.perf == NULL)
		seize_begin(&alarm);
	/*
	 * A thread that is not seized yet can make threads that capture is not attached to, or
	 * become the leader by an exec.
	 */
	for (int n = 0; n < SCAN_PASSES_MAX; n++) {
		bool again;

		end = make_pass(t, until_ns);
		if (t->scan.pass.error < 0)
			error = t->scan.pass.error;
		lacks = t->scan.pass.lacks;
		if (end == PASS_TIME_OVER)
			break;
		/* The listed thread is dead, or its exec has made it the leader. */
		if (t->scan.pass.vanished)
			exec_check(t);
		again = t->scan.pass.found > 0 || t->scan.pass.vanished;
		dying = t->scan.pass.dying;
		if (end == PASS_DONE) {
			t->scan.n_refused = t->scan.pass.refused;
			t->scan.n_left_out = t->scan.pass.left_out;
			t->scan.refused_error = t->scan.pass.error;
		}
		attach_end_pass(t);
		if (end != PASS_DONE || !again)
			break;
	}
	if (t->capture->options.perf == NULL)
		seize_end(&alarm);
	/*
	 * A process that is dying, or that cannot be read for a lack of descriptors or memory, has
	 * not ended. But the caller gets the error of a first scan that fails.
	 */
	if (t->threads.n == 0 && ((end == PASS_DONE && dying) || (lacks && t->phase != TRACED_NEW)))
		end = PASS_HELD_UP;
	t->scan.held_up_ticks = end == PASS_HELD_UP ? t->scan.held_up_ticks : 0;
	if (end == PASS_HELD_UP)
		repeat_later(t);
	else if (end == PASS_TIME_OVER && (t->threads.n > 0 || error == 0))
		go_on_later(t);
	if (t->threads.n > 0 || t->scan.held_up_ticks > 0)
		return t->threads.n > before ? (int)(t->threads.n - before) : 0;
	attach_end_pass(t);
	return error;
}

/* The number of threads is compared with the last scan after so many ticks. */
#define SCAN_TICKS 16

/* If more than a few threads are refused, capture tries them again after so many ticks. */
#define REFUSED_FEW   256
#define REFUSED_TICKS 128

/*
 * Returns true if the number of threads is that of the last scan. If no thread has run, no thread
 * was made or has ended.
 */
static bool has_as_many(struct traced_process *t)
{
	struct stat st;

	if (!t->threads.stirred || fstat(t->task_fd, &st) < 0)
		return true;
	/* The directory has a link for each thread and two of its own. */
	if (st.st_nlink >= 2 &&
	    st.st_nlink - 2 != t->threads.n + t->scan.n_refused + t->scan.n_left_out)
		return false;
	sleepers_note_counted(t);
	return true;
}

void attach_check(struct traced_process *t, uint64_t tick, uint64_t time_ns)
{
	const bool retry = t->scan.n_refused > 0 && tick >= t->scan.retry_tick;

	if (tick < t->scan.tick)
		return;
	t->scan.tick = tick + SCAN_TICKS;
	if (t->scan.pass.dir != NULL && time_ns < t->scan.not_before) {
		t->scan.tick = tick + 1;
		return;
	}
	if (t->scan.held_up_ticks == 0 && !retry && has_as_many(t))
		return;
	t->scan.retry_tick = tick + (t->scan.n_refused > REFUSED_FEW ? REFUSED_TICKS : SCAN_TICKS);
	(void)!attach_scan(t);
}

/*
 * PTRACE_SEIZE is repeated, because the time limit may pass while the tracer waits for a processor.
 * After so many tries the thread is left to the next scan.
 */
#define SEIZE_TRIES 4

static void seize_again(struct traced_process *t, struct thread *th)
{
	enum seize_end end = SEIZE_GONE;

	if (tracees_exists(t, th->tid))
		end = seize_thread(th->tid, tracees_options(t, th->tid)) == 0 ? SEIZE_DONE
									      : SEIZE_HELD_UP;
	for (int n = 1; end == SEIZE_HELD_UP && n < SEIZE_TRIES; n++)
		end = seize(t, th->tid);
	switch (end) {
	case SEIZE_DONE:
		tracees_begin_again(th);
		stop_note_seized(th);
		return;
	case SEIZE_GONE:
	case SEIZE_LEFT_OUT:
		tracees_remove(th, MISSED_EXITED);
		return;
	case SEIZE_HELD_UP:
	case SEIZE_REFUSED:
	case SEIZE_LACK:
		tracees_remove(th, MISSED_NOT_ATTACHED);
		return;
	}
}

static void seize_list_again(struct traced_process *t, struct thread *list)
{
	struct thread *next;

	for (struct thread *th = list; th != NULL; th = next) {
		next = th->next;
		state_beat(t);
		seize_again(t, th);
	}
}

void attach_known_again(struct traced_process *t)
{
	struct seize alarm;

	seize_begin(&alarm);
	seize_list_again(t, t->threads.asleep);
	seize_list_again(t, t->threads.awake);
	seize_end(&alarm);
}
