/*
 * A fast HTTP server on loopback for unit tests: it reads a request, records the envelope's event
 * id, and answers. The server is a child process that ends with the test's process. Unlike
 * tests/integration/server.py, it checks nothing in a request.
 */
#ifndef TESTS_UNIT_DAEMON_SINK_H
#define TESTS_UNIT_DAEMON_SINK_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <zlib.h>

#include "lib/base/util.h"
#include "tests/unit/suite.h"

#define SINK_ARRIVALS_MAX 16384
#define SINK_ANSWERS_MAX  4
#define SINK_BYTES_MAX	  (256 * 1024)

struct sink_arrival {
	char event_id[33];
	bool is_v1;
	bool has_report;
};

/* In memory that the test and the server share. */
struct sink_shared {
	atomic_uint n;		 /* arrivals */
	atomic_uint connections; /* so far */
	struct sink_arrival arrivals[SINK_ARRIVALS_MAX];
};

struct sink {
	int fd;
	pid_t pid;
	struct sink_shared *shared;
	/* The status and headers of the answer to the n-th request; "", or a later request: 200. */
	char answers[SINK_ANSWERS_MAX][160];
};

/*
 * Initialises s without a process: binds a port, on which no process listens before sink_up().
 * Writes the DSN of the server, with this port, to ret_dsn, which has size bytes.
 */
static inline void sink_init(struct sink *s, char *ret_dsn, size_t size)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);

	memset(s, 0, sizeof(*s));
	s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	OK(bind(s->fd, (struct sockaddr *)&a, len));
	OK(getsockname(s->fd, (struct sockaddr *)&a, &len));
	(void)snprintf(ret_dsn, size, "http://key@127.0.0.1:%d/42", ntohs(a.sin_port));
	s->shared = mmap(NULL, sizeof(*s->shared), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(s->shared, MAP_FAILED);
}

/* Returns the length of a request's head, or 0 if the head is not complete yet. */
static inline size_t sink_head(char *bytes, size_t *ret_body)
{
	char *end = strstr(bytes, "\r\n\r\n");
	const char *length;

	if (end == NULL)
		return 0;
	length = strstr(bytes, "Content-Length: ");
	*ret_body = length == NULL ? 0 : strtoul(strchr(length, ' '), NULL, 10);
	return (size_t)(end - bytes) + 4;
}

/* Records the event id and the items of the envelope in body. */
static inline bool sink_note(struct sink *s, char *body, size_t size)
{
	static char text[SINK_BYTES_MAX + 1];
	const unsigned int n = atomic_load(&s->shared->n);
	struct sink_arrival *a = &s->shared->arrivals[n];
	z_stream z = {.next_in = (Bytef *)body,
		      .avail_in = (uInt)size,
		      .next_out = (Bytef *)text,
		      .avail_out = SINK_BYTES_MAX};

	/* 16: gzip. */
	if (n == SINK_ARRIVALS_MAX || inflateInit2(&z, 16 + MAX_WBITS) != Z_OK)
		return false;
	if (inflate(&z, Z_FINISH) != Z_STREAM_END)
		return false;
	text[z.total_out] = '\0';
	(void)inflateEnd(&z);
	if (sscanf(text, "{\"event_id\":\"%32[0-9a-f]\"", a->event_id) != 1)
		return false;
	a->is_v1 = strstr(text, "\"type\":\"transaction\"") != NULL;
	a->has_report = strstr(text, "\"type\":\"client_report\"") != NULL;
	atomic_store(&s->shared->n, n + 1);
	return true;
}

static inline bool sink_answer(const struct sink *s, int connection, unsigned int n)
{
	static const char taken[] = "200 OK\r\n";
	char text[256];
	int len =
		snprintf(text, sizeof(text), "HTTP/1.1 %sContent-Length: 0\r\n\r\n",
			 n < SINK_ANSWERS_MAX && s->answers[n][0] != '\0' ? s->answers[n] : taken);

	return send(connection, text, (size_t)len, MSG_NOSIGNAL) == len;
}

static inline void sink_serve(struct sink *s, int connection)
{
	static char bytes[SINK_BYTES_MAX + 1];
	size_t have = 0, head, body;
	ssize_t n;

	while ((n = recv(connection, bytes + have, SINK_BYTES_MAX - have, 0)) > 0) {
		have += (size_t)n;
		bytes[have] = '\0';
		head = sink_head(bytes, &body);
		if (head == 0 || have < head + body)
			continue;
		n = (ssize_t)atomic_load(&s->shared->n);
		/* A client sends the next request only after the answer. */
		if (have > head + body || !sink_note(s, bytes + head, body) ||
		    !sink_answer(s, connection, (unsigned int)n))
			return;
		have = 0;
	}
}

/* Starts the server's process, which listens and answers. */
static inline void sink_up(struct sink *s)
{
	OK(listen(s->fd, 8));
	s->pid = fork();
	ck_assert_int_ge(s->pid, 0);
	if (s->pid > 0)
		return;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		int connection = accept(s->fd, NULL, NULL);

		if (connection < 0)
			_exit(1);
		atomic_fetch_add(&s->shared->connections, 1);
		sink_serve(s, connection);
		(void)close(connection);
	}
}

/* Returns the number of envelopes that have arrived: the first elements of shared->arrivals. */
static inline unsigned int sink_n(const struct sink *s)
{
	return atomic_load(&s->shared->n);
}

/* Kills the server's process, if it was started, and frees everything. */
static inline void sink_end(struct sink *s)
{
	if (s->pid > 0) {
		(void)kill(s->pid, SIGKILL);
		(void)waitpid(s->pid, NULL, 0);
	}
	(void)munmap(s->shared, sizeof(*s->shared));
	close_fd(&s->fd);
}

#endif
