#include "lib/capture/capture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "lib/capture/target.h"

int capture_new(const struct capture_options *options, struct capture **ret)
{
	struct capture *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return -ENOMEM;
	c->options = *options;
	table_init(&c->threads, 0);
	table_init(&c->strangers, 0);
	*ret = c;
	return 0;
}

void capture_free(struct capture *c)
{
	if (c == NULL)
		return;
	while (c->targets != NULL) {
		struct target *t = c->targets;

		c->targets = t->next;
		target_free(t);
	}
	table_fini(&c->threads);
	table_fini(&c->strangers);
	free(c->by_index);
	free(c->free_indices);
	free(c);
}

int capture_add(struct capture *c, uint32_t id, int32_t pid, int pidfd,
		struct capture_sink *sink, struct capture_counters *counters,
		uint64_t tick)
{
	struct target *t;
	int r;

	r = target_new(c, id, pid, pidfd, sink, counters, tick, &t);
	if (r < 0)
		return r;
	c->options.beat->touching = id;
	r = target_scan(t);
	c->options.beat->touching = 0;
	if (r < 0 || t->n_threads == 0) {
		target_free(t);
		return r < 0 ? r : -ESRCH;
	}
	t->next = c->targets;
	c->targets = t;
	counters->threads = t->n_threads;
	return 0;
}

/* Tells the reader, and the caller; the target waits to be freed. */
static void end_target(struct target *t)
{
	if (t->ended)
		return;
	t->ended = true;
	t->counters->threads = 0;
}

static void free_ended(struct capture *c)
{
	for (struct target **at = &c->targets; *at != NULL;) {
		struct target *t = *at;

		if (!t->ended ||
		    !target_tell(t, RECORD_END, 0, t->last_tick, t->last_ns)) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		c->options.event(c->options.ctx, t->id, CAPTURE_GONE);
		target_free(t);
	}
}

void capture_tick(struct capture *c, uint64_t tick, uint64_t due_ns,
		  uint64_t time_ns)
{
	c->due_ns = due_ns;
	for (struct target *t = c->targets; t != NULL; t = t->next)
		target_tick(t, tick, time_ns);
	capture_reap(c);
}

/* Tgid of a thread that the kernel attached by itself; 0 if it is gone. */
static uint32_t thread_group_of(uint32_t tid)
{
	static const char key[] = "\nTgid:\t";
	char path[32], text[4096];
	const char *line;
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%u/status", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close_fd(&fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	line = strstr(text, key);
	return line == NULL
		       ? 0
		       : (uint32_t)strtoul(line + sizeof(key) - 1, NULL, 10);
}

/*
 * A stop of a thread that is not known: a new thread of a target, or a process
 * made by clone(2) without SIGCHLD, which the kernel attaches as well.
 */
static void first_stop(struct capture *c, uint32_t tid,
		       enum tracee_status status, int signal)
{
	uint32_t group, ignored;

	if (table_get(&c->strangers, tid, &ignored)) {
		(void)table_remove(&c->strangers, tid);
		(void)ptrace(PTRACE_DETACH, tid, NULL,
			     (void *)(intptr_t)signal);
		return;
	}
	/* It goes on at once: what follows opens files. */
	if (status == TRACEE_GROUP_STOP)
		(void)ptrace(PTRACE_LISTEN, tid, NULL, NULL);
	else
		(void)ptrace(PTRACE_CONT, tid, NULL, (void *)(intptr_t)signal);
	group = thread_group_of(tid);
	for (struct target *t = c->targets; t != NULL; t = t->next) {
		if ((uint32_t)t->pid != group)
			continue;
		t->counters->event_stops++;
		(void)!target_adopt(t, tid);
		return;
	}
	if (group != 0 && table_put(&c->strangers, tid, 1) == 0)
		(void)ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
}

static void handle_exec(struct capture *c, uint32_t tid)
{
	struct thread *leader = capture_thread(c, tid);
	struct target *t;

	(void)ptrace(PTRACE_CONT, tid, NULL, NULL);
	if (leader == NULL)
		return;
	t = leader->target;
	t->counters->event_stops++;
	/* The thread that called exec goes on as the leader, under its tid. */
	target_forget_threads(t);
	(void)!target_adopt(t, tid);
	(void)target_tell(t, RECORD_EXEC, tid, t->last_tick, t->last_ns);
	c->options.event(c->options.ctx, t->id, CAPTURE_EXEC);
}

static void handle_status(struct capture *c, uint32_t tid, int status)
{
	int signal;
	enum tracee_status kind = tracee_classify(status, &signal);
	struct thread *th = capture_thread(c, tid);
	struct target *t;

	switch (kind) {
	case TRACEE_DEAD:
		(void)table_remove(&c->strangers, tid);
		if (th == NULL)
			return;
		t = th->target;
		thread_remove(th, MISSED_EXITED);
		if (t->n_threads == 0)
			end_target(t);
		return;
	case TRACEE_EXEC:
		handle_exec(c, tid);
		return;
	case TRACEE_TRAP:
	case TRACEE_GROUP_STOP:
	case TRACEE_SIGNAL:
	case TRACEE_CLONE:
	case TRACEE_OTHER:
		if (th == NULL)
			first_stop(c, tid, kind, signal);
		else
			thread_stopped(th, kind, signal);
		return;
	}
}

void capture_reap(struct capture *c)
{
	int status;
	pid_t tid;

	while ((tid = waitpid(-1, &status, __WALL | WNOHANG)) > 0)
		handle_status(c, (uint32_t)tid, status);
	free_ended(c);
}

size_t capture_pending(const struct capture *c)
{
	return c->n_pending;
}

void capture_reset(struct capture *c, const struct capture_sink *sink)
{
	for (struct target *t = c->targets; t != NULL; t = t->next)
		if (t->sink == sink)
			t->needs_reset = true;
}

void capture_hint(struct capture *c, uint32_t target, uint32_t tid,
		  uint64_t top)
{
	struct thread *th = capture_thread(c, tid);

	if (th != NULL && th->target->id == target)
		th->hint_top = top;
}

bool capture_finish(struct capture *c)
{
	for (struct target *t = c->targets; t != NULL; t = t->next) {
		for (struct thread *th = t->threads; th != NULL;
		     th = th->next) {
			if (!th->pending)
				continue;
			t->counters->missed[MISSED_NOT_STOPPED] +=
				th->unaccounted;
			thread_clear_pending(th);
		}
		/* All samples are in: the reader's chunk can end here. */
		(void)target_tell_tick(t, t->last_tick, t->last_ns);
		end_target(t);
	}
	free_ended(c);
	return c->targets == NULL;
}
