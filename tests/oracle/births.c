/*
 * Prints the stacks of new threads at each of their first instructions.
 *
 * usage: births PID THREADS STEPS
 *
 * The program traces the main thread of process PID. It single-steps each of the next THREADS
 * threads that the main thread creates, for STEPS instructions. For each instruction it prints
 * a line to stdout, with the reason why the walk has ended (unwind_end_name()) and the frames:
 *
 *	END NAME:ADDRESS NAME:ADDRESS ...
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "daemon/oracle/live.h"
#include "tests/oracle/thread.h"

static struct unwind_stack stack;

static union {
	struct record_sample record;
	uint8_t bytes[THREAD_COPY_MAX];
} buffer;

static void put_stack(struct live *l)
{
	(void)fputs(unwind_end_name(stack.end), stdout);
	for (size_t i = 0; i < stack.n; i++) {
		const struct unwind_frame *f = &stack.frames[i];
		const char *name = "?";
		uint64_t offset;

		(void)!unwind_symbol_at(l->space, f->addr - !f->is_leaf, &name, &offset);
		(void)printf(" %s:%lx", name, (unsigned long)f->addr);
	}
	(void)putchar('\n');
}

/* Single-steps a new thread from its first stop on, prints its stacks, and releases it. */
static int follow_thread(struct live *l, pid_t tid, unsigned long steps)
{
	struct thread_stop stop = {.tid = tid, .status = TRACEE_OTHER};
	bool changed;
	int r;

	r = live_read_maps(l, &changed);
	while (r == 0 && steps-- > 0) {
		r = thread_walk(l, &stop, &buffer.record, &stack);
		if (r == 0)
			put_stack(l);
		if (r == 0)
			r = thread_step(&stop);
	}
	thread_release(&stop);
	return r;
}

/* Waits for new threads, and lets the main thread run meanwhile. */
static int follow_new_threads(struct live *l, unsigned long threads, unsigned long steps)
{
	const pid_t pid = l->pid;
	int r = 0;

	while (r == 0 && threads > 0) {
		int status;
		pid_t tid = waitpid(-1, &status, __WALL);

		if (tid < 0 || !WIFSTOPPED(status))
			return -ESRCH;
		if (tid == pid) {
			const int signal = status >> 16 ? 0 : WSTOPSIG(status);

			if (ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)signal) < 0)
				return -errno;
			continue;
		}
		r = follow_thread(l, tid, steps);
		threads--;
	}
	return r;
}

int main(int argc, char **argv)
{
	struct thread_stop stop;
	struct live live;
	int r;

	if (argc != 4) {
		(void)fputs("usage: births PID THREADS STEPS\n", stderr);
		return 2;
	}
	r = live_init(&live, (int32_t)strtol(argv[1], NULL, 10));
	if (r == 0)
		r = thread_stop(live.pid, THREAD_STOP_NS, &stop);
	if (r == 0 && (ptrace(PTRACE_SETOPTIONS, live.pid, NULL, PTRACE_O_TRACECLONE) < 0 ||
		       ptrace(PTRACE_CONT, live.pid, NULL, NULL) < 0))
		r = -errno;
	if (r == 0)
		r = follow_new_threads(&live, strtoul(argv[2], NULL, 10),
				       strtoul(argv[3], NULL, 10));
	if (r < 0)
		(void)fprintf(stderr, "births: %s\n", strerror(-r));
	live_fini(&live);
	return r < 0;
}
