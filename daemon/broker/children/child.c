#include "daemon/broker/children/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/common/drain.h"
#include "daemon/common/log.h"
#include "daemon/common/resource_shortage.h"
#include "daemon/msg/msg_io.h"
#include "lib/base/clock.h"
#include "lib/base/token_bucket.h"

/*
 * The last of the pauses before child_send() tries again, each twice as long as the one before.
 * The broker does nothing else meanwhile, so the sum has to be short.
 */
#define SHORTAGE_MS_MAX 16

/* Messages that a child can have left when it died: more than the socket's buffer holds. */
#define LEFT_MESSAGES_MAX 4096

struct child *child_at(struct children *c, size_t i)
{
	if (i == 0)
		return &c->capture;
	i--;
	if (i < c->n_ships)
		return &c->ships[i]->child;
	i -= c->n_ships;
	return i < c->n_unwinds ? &c->unwinds[i]->child : NULL;
}

bool child_is_wanted(const struct child *child)
{
	const struct state *s = child->children->state;

	if (s->phase == PHASE_CLOSING || child->is_leaving)
		return false;
	switch (child->type->kind) {
	case CHILD_CAPTURE:
		return state_is_sampling(s);
	case CHILD_UNWIND:
		return s->phase == PHASE_PROFILING;
	case CHILD_SHIP:
	case CHILD_KIND_N:
		break;
	}
	return true;
}

bool child_kill(struct child *child)
{
	if (child->pid == 0 || child->state >= CHILD_KILLED)
		return false;
	(void)kill(child->pid, SIGKILL);
	child->state = CHILD_KILLED;
	child->killed_ns = clock_mono_ns();
	return true;
}

/*
 * Closes the socket to the child. A ship that was taken over may have sent descriptors, which are
 * still in the socket's queue: drain_close() drops them without blocking the broker.
 */
void child_close(struct child *child)
{
	loop_remove(child->children->state->loop, &child->source);
	if (child->type->kind == CHILD_SHIP)
		drain_close(&child->fd, false);
	close_fd(&child->fd);
}

void child_fail(struct child *child, const char *why)
{
	if (!child_kill(child))
		return;
	log_warning("%s (pid %d) %s: it is %s", child->type->name, child->pid, why,
		    child_is_wanted(child) ? "replaced" : "ended");
	child_close(child);
}

void child_note_shortage(const struct child *child, const char *what, int error)
{
	char delayed[64];

	(void)snprintf(delayed, sizeof(delayed), "%s %s", what, child->type->name);
	resource_shortage_note(error, delayed);
}

/*
 * Sends a message. Tries again if the kernel is short of memory or has too many descriptors in
 * flight. Such a shortage passes when the kernel has killed a process for want of memory, or when
 * children have read their messages.
 */
static int send_patiently(const struct child *child, const void *message, size_t size,
			  const int *fds, size_t n_fds)
{
	int r = ipc_send(child->fd, message, size, fds, n_fds);

	for (useconds_t ms = 1; r != -EAGAIN && resource_shortage_is(-r) && ms <= SHORTAGE_MS_MAX;
	     ms *= 2) {
		child_note_shortage(child, "a message to", -r);
		(void)usleep(ms * 1000);
		r = ipc_send(child->fd, message, size, fds, n_fds);
	}
	return r;
}

void child_send(struct child *child, const void *message, size_t size, const int *fds, size_t n_fds)
{
	char why[96];
	int r;

	if (child->fd < 0)
		return;
	r = send_patiently(child, message, size, fds, n_fds);
	/* EPIPE: the child has ended; SIGCHLD will report it. */
	if (r == 0 || r == -EPIPE)
		return;
	(void)snprintf(why, sizeof(why), "cannot be sent a message (%s)", strerror(-r));
	child_fail(child, r == -EAGAIN ? "does not take its messages" : why);
}

void child_send_id(struct child *child, enum msg_type type, uint32_t id)
{
	const struct msg_id m = {.h = {type, sizeof(m)}, .id = id};

	child_send(child, &m, sizeof(m), NULL, 0);
}

/* The first message of a child has to be MSG_READY. */
static void take_ready(struct child *child, const struct ipc_message *m)
{
	if (msg_as(m, MSG_READY) == NULL) {
		child_fail(child, "does not begin with MSG_READY");
		return;
	}
	child->state = CHILD_READY;
	child->children->has_worked[child->type->kind] = true;
}

/* The size of the bucket of messages: the broker reads at once what a child may send in this time.
 */
#define BURST_NS (NS_PER_SEC / 4)

/* Returns the share of a second that the rate limit gives to one message of the child. */
static uint64_t message_ns(const struct child *child)
{
	return NS_PER_SEC /
	       (child->type->kind == CHILD_CAPTURE ? CAPTURE_MESSAGES_HZ : CHILD_MESSAGES_HZ);
}

/*
 * Counts a message of the child. Returns false if the message is above the rate limit: then the
 * socket is paused, and child_check_slowed() resumes it.
 */
static bool may_read(struct child *child)
{
	const uint64_t now_ns = clock_mono_ns(), ns = message_ns(child);

	if (token_bucket_holds(child->messages_full_ns, BURST_NS, now_ns, ns)) {
		token_bucket_take(&child->messages_full_ns, now_ns, ns);
		return true;
	}
	if (!child->is_slowed)
		log_warning("%s (pid %d) sends more than %llu messages a second: the broker "
			    "reads the others later, and none is lost",
			    child->type->name, child->pid, (unsigned long long)(NS_PER_SEC / ns));
	child->is_slowed = true;
	loop_pause(child->children->state->loop, child->source);
	return false;
}

void child_check_slowed(struct child *child)
{
	if (!child->is_slowed ||
	    !token_bucket_holds(child->messages_full_ns, BURST_NS, clock_mono_ns(), BURST_NS / 2))
		return;
	child->is_slowed = false;
	if (child->fd >= 0)
		loop_resume_source(child->children->state->loop, child->source);
}

/*
 * Receives a message as ipc_recv(). Receives no descriptors from a ship, whose messages have none:
 * a ship that was taken over could send the descriptor of a connection, and closing it may block
 * (drain.h). unwind and capture cannot open connections.
 */
static int receive(const struct child *child, struct ipc_message *m)
{
	ssize_t n;

	if (child->type->kind != CHILD_SHIP)
		return ipc_recv(child->fd, m);
	n = drain_recv(child->fd, false, m->bytes, sizeof(m->bytes));
	m->n_fds = 0;
	m->size = n < 0 ? 0 : (size_t)n;
	return n < 0 ? (int)n : n > 0;
}

static void read_message(struct child *child)
{
	struct ipc_message m;
	/* A ship's messages have no descriptors: receive(). */
	int r = child->type->kind == CHILD_SHIP ? 0 : resource_shortage_check_descriptors();

	if (r < 0) {
		child_note_shortage(child, "a message of", -r);
		loop_pause(child->children->state->loop, child->source);
		return;
	}
	r = receive(child, &m);
	if (r == -EAGAIN)
		return;
	if (r < 0 && resource_shortage_is(-r)) {
		child_note_shortage(child, "a message of", -r);
		return;
	}
	if (r == 0) {
		/* The child is about to end; deadlines.c kills one that does not. */
		child_close(child);
		return;
	}
	if (r < 0) {
		child_fail(child, "breaks the rules of its socket");
		return;
	}
	if (child->state == CHILD_STARTS)
		take_ready(child, &m);
	else
		child->children->events.message(child->children->events.ctx, child, &m);
	ipc_close_fds(&m);
}

void child_on_readable(void *ctx)
{
	struct child *child = ctx;

	if (may_read(child))
		read_message(child);
}

/*
 * The loop stops when the queue is empty and does not wait for the end of the socket: the child
 * may have passed its end to another process.
 */
void child_read_last(struct child *child)
{
	struct pollfd readable = {.fd = child->fd, .events = POLLIN};

	for (int i = 0; i < LEFT_MESSAGES_MAX && child->fd >= 0 && poll(&readable, 1, 0) > 0; i++)
		read_message(child);
	child_close(child);
}

/*
 * The size of the buffer. A longer line is logged in parts. A line that daemon/common/log.c writes
 * fits, unless many of its characters are escaped.
 */
#define LOG_LINE_BYTES 6144

/* The most reads at the end of the process: enough for all bytes that a pipe holds. */
#define LOG_LAST_READS 32

struct child_log {
	int fd;
	struct loop_source *source;
	size_t used;
	char text[LOG_LINE_BYTES + 1];
};

/* Logs one line, of size bytes. Returns false if the line was suppressed. */
static bool log_text(const struct child *child, char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (text[i] == '\0')
			text[i] = '?';
	text[size] = '\0';
	return log_relay(child->type->name, text);
}

/*
 * Logs the complete lines of the buffer, and a line that fills the buffer. Returns false if a line
 * was suppressed.
 */
static bool log_lines(const struct child *child)
{
	struct child_log *l = child->log;
	char *end, *line = l->text;
	bool logged = true;

	while ((end = memchr(line, '\n', l->used)) != NULL) {
		const size_t size = (size_t)(end - line);

		logged &= log_text(child, line, size);
		line = end + 1;
		l->used -= size + 1;
	}
	if (l->used == LOG_LINE_BYTES) {
		logged &= log_text(child, line, l->used);
		l->used = 0;
	}
	memmove(l->text, line, l->used);
	return logged;
}

/* Reads from the pipe into the free part of the buffer. Returns what read(2) returns. */
static ssize_t read_log(struct child_log *l)
{
	const ssize_t n = read(l->fd, l->text + l->used, LOG_LINE_BYTES - l->used);

	if (n > 0)
		l->used += (size_t)n;
	return n;
}

static void on_log_readable(void *ctx)
{
	struct child *child = ctx;
	struct child_log *l = child->log;
	const ssize_t n = read_log(l);

	if (n == 0) /* the process has closed its stderr, or ended */
		loop_remove(child->children->state->loop, &l->source);
	else if (n > 0 && !log_lines(child))
		/*
		 * Reads no more until loop_resume(), so that the lines of a child cost the broker
		 * little processor time.
		 */
		loop_pause(child->children->state->loop, l->source);
}

int child_log_open(struct child *child, int *ret_fd)
{
	struct child_log *l = calloc(1, sizeof(*l));
	int pair[2], r;

	if (l == NULL)
		return -ENOMEM;
	if (pipe2(pair, O_CLOEXEC) < 0) {
		r = -errno;
		free(l);
		return r;
	}
	child->log = l;
	l->fd = pair[0];
	*ret_fd = pair[1];
	r = fcntl(l->fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
	if (r == 0 && child->type->kind == CHILD_CAPTURE)
		r = fcntl(*ret_fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
	if (r == 0)
		r = loop_add(child->children->state->loop, l->fd, on_log_readable, child,
			     &l->source);
	if (r < 0) {
		close_fd(ret_fd);
		child_log_close(child);
	}
	return r;
}

void child_log_close(struct child *child)
{
	struct child_log *l = child->log;

	if (l == NULL)
		return;
	for (int i = 0; i < LOG_LAST_READS && read_log(l) > 0; i++)
		(void)log_lines(child);
	if (l->used > 0)
		(void)log_text(child, l->text, l->used);
	loop_remove(child->children->state->loop, &l->source);
	close_fd(&l->fd);
	free(l);
	child->log = NULL;
}
