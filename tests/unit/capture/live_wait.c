#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "lib/capture/state.h"
#include "lib/capture/tracees.h"
#include "tests/unit/capture/live.h"
#include "tests/unit/suite.h"

/* Reads a file of a thread. Returns false if the thread is gone. */
static bool read_proc(pid_t tid, const char *name, char *text, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, size - 1);
	close_fd(&fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return true;
}

void live_until_blocked(struct live *l, pid_t tid)
{
	char text[256];

	do {
		live_patience();
		if (l->capture != NULL && live_state(tid) == 't')
			live_reap(l);
		ck_assert(read_proc(tid, "syscall", text, sizeof(text)));
		/*
		 * A thread that was woken and has not run since still shows its call, but is not
		 * blocked.
		 */
	} while (text[0] < '0' || text[0] > '9' || live_state(tid) == 'R');
}

long live_status(pid_t tid, const char *key)
{
	char text[4096], *line;

	if (!read_proc(tid, "status", text, sizeof(text)))
		return -1;
	line = strstr(text, key);
	ck_assert_ptr_nonnull(line);
	return strtol(line + strlen(key) + 1, NULL, 10);
}

char live_state(pid_t tid)
{
	char text[512], *state;

	if (!read_proc(tid, "stat", text, sizeof(text)))
		return 0;
	state = strrchr(text, ')');
	return state == NULL ? 0 : state[2];
}

/* Returns true if the thread has had no processor since a stop that gave a sample. */
static bool stands_since_stop(const struct live *l, pid_t tid)
{
	const struct thread *th = tracees_find(l->capture, (uint32_t)tid);
	unsigned long long slices;
	char text[256];

	return th != NULL && th->stop.known && live_state(tid) == 'R' &&
	       read_proc(tid, "schedstat", text, sizeof(text)) &&
	       sscanf(text, "%*u %*u %llu", &slices) == 1 && slices == th->stop.mark.slices;
}

/*
 * Waits until each thread that should run has got a processor. A thread that was woken or
 * continued, or waits for a page, and has had no processor since, is neither "running" nor in a
 * call. The sampler rightly treats it as unchanged.
 */
void live_until_all_run(const struct live *l)
{
	char text[256], state;

	for (size_t i = 0; i < l->n_threads; i++) {
		const pid_t tid = (pid_t)l->threads[i].tid;

		while (!l->threads[i].exited && read_proc(tid, "syscall", text, sizeof(text)) &&
		       text[0] == '-' && ((state = live_state(tid)) == 'R' || state == 'D'))
			live_patience();
		while (stands_since_stop(l, tid))
			live_patience();
	}
}

void live_until_state(struct live *l, pid_t tid, char state)
{
	while (live_state(tid) != state) {
		if (l != NULL && l->capture != NULL)
			live_reap(l);
		live_patience();
	}
}

pid_t live_start_tracer(pid_t tid)
{
	pid_t tracer;
	int fds[2];
	char byte;

	OK(pipe2(fds, O_CLOEXEC));
	tracer = fork();
	ck_assert_int_ge(tracer, 0);
	if (tracer == 0) {
		byte = ptrace(PTRACE_SEIZE, tid, NULL, NULL) == 0;
		(void)!write(fds[1], &byte, 1);
		for (;;)
			pause();
	}
	ck_assert_int_eq(read(fds[0], &byte, 1), 1);
	ck_assert_int_eq(byte, 1);
	(void)close(fds[0]);
	(void)close(fds[1]);
	return tracer;
}
