#include "daemon/metrics.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "daemon/lack.h"
#include "daemon/listen_at.h"

/* More than anybody has who scrapes; the oldest goes for another. */
#define CONNECTIONS_MAX 8

/* Some lines of headers; what is more is no scraper. */
#define REQUEST_MAX 4096

/*
 * The text has some 20 KB, whatever is profiled: nothing in it is by target;
 * and three lines for each of SHIPS_MAX servers, 400 bytes each at the worst.
 */
#define TEXT_MAX (64 * 1024)

/* So that it fits into the socket's buffer, and send(2) takes it at once. */
#define SEND_BUFFER (4 * TEXT_MAX)

struct connection {
	struct metrics *metrics;
	int fd; /* -1: free */
	uint64_t number;
	struct loop_source *source;
	size_t size;
	char request[REQUEST_MAX + 1];
};

struct metrics {
	struct loop *loop;
	metrics_fn fn;
	void *ctx;
	int fd;
	struct loop_source *source;
	uint64_t accepted;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* "": a port */
	struct connection connections[CONNECTIONS_MAX];
};

static void end(struct connection *c)
{
	loop_remove(c->metrics->loop, &c->source);
	close_fd(&c->fd);
	c->size = 0;
}

static void answer(struct connection *c, const char *status, const char *type,
		   const char *text, size_t size)
{
	struct buf out;

	buf_init(&out, TEXT_MAX + 512);
	if (buf_printf(&out,
		       "HTTP/1.1 %s\r\nContent-Type: %s\r\n"
		       "Content-Length: %zu\r\nConnection: close\r\n\r\n",
		       status, type, size) == 0 &&
	    buf_add(&out, text, size) == 0)
		(void)!send(c->fd, out.data, out.len,
			    MSG_NOSIGNAL | MSG_DONTWAIT);
	buf_fini(&out);
	(void)shutdown(c->fd, SHUT_WR);
}

static void refuse(struct connection *c, const char *status)
{
	answer(c, status, "text/plain", status, strlen(status));
}

static void serve(struct connection *c)
{
	struct buf text;

	if (strncmp(c->request, "GET ", 4) != 0) {
		refuse(c, "405 Method Not Allowed");
		return;
	}
	if (strncmp(c->request, "GET /metrics HTTP/1.", 20) != 0) {
		refuse(c, "404 Not Found");
		return;
	}
	buf_init(&text, TEXT_MAX);
	if (c->metrics->fn(c->metrics->ctx, &text) < 0)
		refuse(c, "500 Internal Server Error");
	else
		answer(c, "200 OK",
		       "application/openmetrics-text; version=1.0.0; "
		       "charset=utf-8",
		       buf_string(&text), text.len);
	buf_fini(&text);
}

static void on_request(void *ctx)
{
	struct connection *c = ctx;
	ssize_t n = recv(c->fd, c->request + c->size, REQUEST_MAX - c->size,
			 MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		end(c);
		return;
	}
	c->size += (size_t)n;
	c->request[c->size] = '\0';
	/* Its headers have come as a whole, or there is something else. */
	if (strstr(c->request, "\r\n\r\n") != NULL)
		serve(c);
	else if (c->size < REQUEST_MAX && strlen(c->request) == c->size)
		return;
	else
		refuse(c, "400 Bad Request");
	end(c);
}

/* A free place, or the oldest's. */
static struct connection *place(struct metrics *m)
{
	struct connection *oldest = &m->connections[0];

	for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
		struct connection *c = &m->connections[i];

		if (c->fd < 0)
			return c;
		if (c->number < oldest->number)
			oldest = c;
	}
	end(oldest);
	return oldest;
}

static void on_connection(void *ctx)
{
	struct metrics *m = ctx;
	const int size = SEND_BUFFER;
	struct connection *c;
	int fd = accept4(m->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0 && lack_is(errno) && errno != EAGAIN) {
		lack_note(errno, "a request for metrics");
		loop_rest(m->loop, m->source);
	}
	if (fd < 0)
		return;
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	c = place(m);
	c->fd = fd;
	c->number = ++m->accepted;
	if (loop_add(m->loop, fd, on_request, c, &c->source) < 0)
		close_fd(&c->fd);
}

static int start_listening(struct metrics *m, const struct listen_at *at)
{
	const int one = 1;

	m->fd = socket(at->any.sa_family,
		       SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (m->fd < 0)
		return -errno;
	if (at->any.sa_family != AF_UNIX)
		(void)setsockopt(m->fd, SOL_SOCKET, SO_REUSEADDR, &one,
				 sizeof(one));
	if (bind(m->fd, &at->any, at->size) < 0 ||
	    listen(m->fd, CONNECTIONS_MAX))
		return -errno;
	return 0;
}

/* A socket that is left there is a dead daemon's: the living has the lock. */
static int listen_at_path(struct metrics *m, const struct listen_at *at)
{
	const char *path = at->path.sun_path;
	struct stat st;
	int r;

	if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
		(void)unlink(path);
	r = start_listening(m, at);
	if (r < 0)
		return r;
	memcpy(m->path, path, sizeof(m->path));
	return chmod(path, 0666) < 0 ? -errno : 0;
}

int metrics_new(struct loop *l, const char *where, metrics_fn fn, void *ctx,
		struct metrics **ret)
{
	struct metrics *m = calloc(1, sizeof(*m));
	struct listen_at at;
	int r;

	if (m == NULL)
		return -ENOMEM;
	m->loop = l;
	m->fn = fn;
	m->ctx = ctx;
	m->fd = -1;
	for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
		m->connections[i].metrics = m;
		m->connections[i].fd = -1;
	}
	r = listen_at_parse(where, &at);
	if (r == 0)
		r = at.any.sa_family == AF_UNIX ? listen_at_path(m, &at)
						: start_listening(m, &at);
	if (r == 0)
		r = loop_add(l, m->fd, on_connection, m, &m->source);
	if (r < 0)
		metrics_free(m);
	else
		*ret = m;
	return r;
}

void metrics_free(struct metrics *m)
{
	if (m == NULL)
		return;
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		end(&m->connections[i]);
	loop_remove(m->loop, &m->source);
	close_fd(&m->fd);
	if (m->path[0] != '\0')
		(void)unlink(m->path);
	free(m);
}
