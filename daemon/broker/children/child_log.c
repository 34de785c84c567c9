#include "daemon/broker/children/child_log.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/common/log.h"

/*
 * The size of the buffer. A longer line is logged in parts. A line that daemon/common/log.c writes
 * fits, unless many of its characters are escaped.
 */
#define LINE_BYTES 6144

/* The most reads at the end of the process: enough for all bytes that a pipe holds. */
#define LAST_READS 32

struct child_log {
	int fd;
	struct loop_source *source;
	size_t used;
	char text[LINE_BYTES + 1];
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
	if (l->used == LINE_BYTES) {
		logged &= log_text(child, line, l->used);
		l->used = 0;
	}
	memmove(l->text, line, l->used);
	return logged;
}

/* Reads from the pipe into the free part of the buffer. Returns what read(2) returns. */
static ssize_t read_some(struct child_log *l)
{
	const ssize_t n = read(l->fd, l->text + l->used, LINE_BYTES - l->used);

	if (n > 0)
		l->used += (size_t)n;
	return n;
}

static void on_readable(void *ctx)
{
	struct child *child = ctx;
	struct child_log *l = child->log;
	const ssize_t n = read_some(l);

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
		r = loop_add(child->children->state->loop, l->fd, on_readable, child, &l->source);
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
	for (int i = 0; i < LAST_READS && read_some(l) > 0; i++)
		(void)log_lines(child);
	if (l->used > 0)
		(void)log_text(child, l->text, l->used);
	loop_remove(child->children->state->loop, &l->source);
	close_fd(&l->fd);
	free(l);
	child->log = NULL;
}
