#include "lib/client/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/*
 * Time between two attempts to connect. The wait doubles with each failure, from WAIT_MIN_NS to
 * WAIT_MAX_NS. An attempt takes three system calls.
 */
#define WAIT_MIN_NS NS_PER_SEC
#define WAIT_MAX_NS (30 * NS_PER_SEC)

/* Time to the next check of the connection while an answer is due or a command is not sent yet. */
#define ANSWER_NS NS_PER_MS

/*
 * The daemon increments the page's beat once a second. The library reads the beat every CHECK_NS.
 * If the beat has not changed for STALE_NS, the library checks the socket.
 */
#define CHECK_NS (2 * NS_PER_SEC)
#define STALE_NS (4 * NS_PER_SEC)

/* The most messages that one call reads. */
#define MESSAGES_MAX 64

#define TAG_HELLO  1
#define TAG_THREAD 2 /* the first tag for threads: TAG_THREAD + tid */

#define REQUEST_HEADER(message_type, message_tag)                                \
	{                                                                        \
		.type = (message_type), .size = sizeof(struct protocol_request), \
		.tag = (message_tag)                                             \
	}

/* A child of fork(2) keeps these two, so it connects to the same daemon. */
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static uint32_t has_path;

int connection_set_path(const char *path)
{
	size_t size;

	if (path == NULL)
		path = secure_getenv(PROTOCOL_SOCKET_ENV);
	if (path == NULL || path[0] == '\0')
		path = PROTOCOL_SOCKET;
	size = strlen(path) + 1;
	if (size > sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, size);
	store(&has_path, 1);
	return 0;
}

void connection_forget_path(void)
{
	store(&has_path, 0);
}

/*
 * Returns true if the descriptor is still the library's socket. A program that becomes a daemon
 * closes all descriptors that it did not open itself, and the number can then belong to another
 * file.
 */
static bool owns_socket(const struct state *s)
{
	struct stat st;

	return s->fd > 0 && fstat(s->fd - 1, &st) == 0 && st.st_dev == s->dev &&
	       st.st_ino == s->ino;
}

static void retry_later(struct state *s)
{
	s->wait_ns = s->wait_ns == 0 ? WAIT_MIN_NS : 2 * s->wait_ns;
	if (s->wait_ns > WAIT_MAX_NS)
		s->wait_ns = WAIT_MAX_NS;
	s->try_ns = state_now_ns() + s->wait_ns;
}

static void disconnect(struct state *s)
{
	if (owns_socket(s)) {
		/* A child that was not made by fork(3) may have the socket open, too. */
		(void)shutdown(s->fd - 1, SHUT_RDWR);
		(void)close(s->fd - 1);
	}
	state_close_on_fork(-1);
	s->fd = 0;
	s->last_sent = 0;
	store(&s->n_sent, 0);
	memset(s->threads, 0, sizeof(s->threads));
	if (exchange(&s->has_page, 0))
		(void)state_map_page(-1);
	retry_later(s);
}

/*
 * Returns true if the message was sent. Returns false if the socket is full for now, or if the
 * connection was lost.
 */
static bool send_message(struct state *s, const void *message, size_t size)
{
	if (!owns_socket(s)) {
		disconnect(s);
		return false;
	}
	if (send(s->fd - 1, message, size, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return true;
	if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS)
		disconnect(s);
	return false;
}

/*
 * Makes a socket whose number is above STDERR_FILENO: programs expect their standard streams at the
 * lower numbers. Returns the descriptor or -errno.
 */
static int make_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int higher;

	if (fd < 0 || fd > STDERR_FILENO)
		return fd < 0 ? -errno : fd;
	higher = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (higher < 0)
		higher = -errno;
	(void)close(fd);
	return higher;
}

int connection_dial(void)
{
	const struct sockaddr *to = (const void *)&address;
	int fd = load(&has_path) ? make_socket() : -ENOTCONN;
	int r;

	if (fd < 0 || connect(fd, to, sizeof(address)) == 0)
		return fd;
	r = -errno;
	(void)close(fd);
	return r;
}

int connection_open(struct state *s)
{
	const struct protocol_hello hello = {
		.h = {.type = PROTOCOL_HELLO, .size = sizeof(hello), .tag = TAG_HELLO},
		.magic = PROTOCOL_MAGIC,
		.version = PROTOCOL_VERSION,
		.flags = PROTOCOL_WANT_PAGE,
	};
	struct stat st;
	int r, fd;

	if (owns_socket(s))
		return 0;
	if (s->fd > 0)
		disconnect(s);
	fd = connection_dial();
	if (fd < 0 || fstat(fd, &st) < 0) {
		r = fd < 0 ? fd : -errno;
		if (fd >= 0)
			(void)close(fd);
		retry_later(s);
		return r;
	}
	s->fd = fd + 1;
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	state_close_on_fork(fd);
	if (send_message(s, &hello, sizeof(hello)))
		return 0;
	/* Only the first message of a connection can be the greeting. */
	if (s->fd > 0)
		disconnect(s);
	return -ECONNREFUSED;
}

/*
 * Maps the daemon's page. Returns false if fd is not a memfd of the page's size that is sealed
 * against shrinking: reading a page that has shrunk would raise SIGBUS. The caller then closes the
 * connection.
 */
static bool map_page(struct state *s, int fd)
{
	struct stat st;
	int seals = fd < 0 ? -1 : fcntl(fd, F_GET_SEALS);

	if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd, &st) < 0 ||
	    (size_t)st.st_size < sizeof(struct protocol_page) || state_map_page(fd) < 0)
		return false;
	s->beat_ns = state_now_ns();
	s->wait_ns = 0;
	__atomic_add_fetch(&s->n_pages, 1, __ATOMIC_SEQ_CST);
	store(&s->has_page, 1);
	return true;
}

/*
 * Stores the daemon's id of thread tid, unless another thread has taken the slot since the request.
 */
static void store_thread_id(struct state *s, uint32_t tid, uint32_t theirs)
{
	uint64_t *at = state_thread_slot(s, tid);

	if (*at >> 32 == tid)
		store(at, (uint64_t)tid << 32 | theirs);
}

static bool handle_answer(struct state *s, const struct protocol_answer *a, int fd)
{
	if (a->h.type != PROTOCOL_ANSWER)
		return false;
	if (a->h.tag == TAG_HELLO)
		return a->result == PROTOCOL_OK && !load(&s->has_page) && map_page(s, fd);
	if (a->h.tag >= TAG_THREAD && a->result == PROTOCOL_OK && a->pid > 0)
		store_thread_id(s, a->h.tag - TAG_THREAD, (uint32_t)a->pid);
	return true;
}

/*
 * Receives one message. Returns 1; 0 if there is none now; -1 if the connection has ended or the
 * message is invalid.
 */
static int receive(struct state *s)
{
	union {
		struct cmsghdr align;
		uint8_t bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct protocol_answer answer;
	struct iovec part = {&answer, sizeof(answer)};
	struct msghdr m = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	/* MSG_TRUNC: returns the size of the message, also of one that is larger than the struct.
	 */
	ssize_t n = recvmsg(s->fd - 1, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC);
	const struct cmsghdr *c;
	bool is_valid;
	int fd = -1;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	c = CMSG_FIRSTHDR(&m);
	if (c != NULL && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(fd)))
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	/* The answer of a newer daemon may have further members, which are ignored. */
	is_valid = (size_t)n >= sizeof(answer) && answer.h.size == (size_t)n &&
		   handle_answer(s, &answer, fd);
	if (fd >= 0)
		(void)close(fd);
	return is_valid ? 1 : -1;
}

static void receive_all(struct state *s)
{
	int r = 1;

	if (!owns_socket(s))
		r = -1;
	for (int n = 0; r > 0 && n < MESSAGES_MAX; n++)
		r = receive(s);
	if (r < 0)
		disconnect(s);
}

/* Sends the last start or stop, also if it was sent on an earlier connection already. */
static void send_command(struct state *s)
{
	const uint32_t n_commands = load(&s->n_commands), command = load(&s->command);
	const struct protocol_request m = {
		.h = REQUEST_HEADER(command == COMMAND_START ? PROTOCOL_START : PROTOCOL_STOP, 0),
	};

	if (s->last_sent == n_commands || command == COMMAND_NONE ||
	    !send_message(s, &m, sizeof(m)))
		return;
	s->last_sent = n_commands;
	__atomic_add_fetch(&s->n_sent, 1, __ATOMIC_SEQ_CST);
}

static void announce_spans(struct state *s)
{
	const struct protocol_request m = {
		.h = REQUEST_HEADER(PROTOCOL_SPANS_OPEN, 0),
	};
	const uint32_t is_open = load(&s->spans) > 0;
	struct protocol_page *page = state_page();

	if (load(&s->is_traced) && !load(&page->is_traced))
		store(&page->is_traced, 1);
	store(&page->spans_open, is_open);
	/* A failure is harmless: the daemon also reads spans_open several times a second. */
	if (is_open && load(&page->wants_open))
		(void)send_message(s, &m, sizeof(m));
}

/*
 * Checks that the daemon is alive. If the beat has not changed for STALE_NS, reads the socket,
 * which shows whether the daemon has closed it.
 */
static void check_daemon(struct state *s, uint64_t now_ns)
{
	const uint32_t beat = load(&state_page()->beat);

	if (beat != s->beat) {
		s->beat = beat;
		s->beat_ns = now_ns;
	} else if (now_ns - s->beat_ns >= STALE_NS) {
		s->beat_ns = now_ns;
		receive_all(s);
	}
}

static uint64_t next_check_ns(const struct state *s, uint64_t now_ns)
{
	if (s->fd == 0)
		return s->try_ns;
	if (!load(&s->has_page))
		return now_ns + ANSWER_NS;
	return now_ns + (s->last_sent == load(&s->n_commands) ? CHECK_NS : ANSWER_NS);
}

void connection_work(struct state *s)
{
	const uint64_t now_ns = state_now_ns();

	if (!load(&has_path)) {
		if (s->fd > 0)
			disconnect(s);
		store(&s->check_ns, UINT64_MAX);
		return;
	}
	if (s->fd == 0 && now_ns >= s->try_ns)
		(void)connection_open(s);
	if (s->fd > 0 && !load(&s->has_page))
		receive_all(s);
	if (s->fd > 0 && load(&s->has_page))
		check_daemon(s, now_ns);
	if (s->fd > 0 && load(&s->has_page))
		send_command(s);
	if (s->fd > 0 && load(&s->has_page))
		announce_spans(s);
	store(&s->check_ns, next_check_ns(s, now_ns));
}

void connection_check_if_due(struct state *s)
{
	if (state_now_ns() >= load(&s->check_ns))
		state_do_work(s, connection_work);
}

bool connection_request_thread_id(struct state *s, uint32_t tid, bool is_new)
{
	const struct protocol_request m = {
		.h = REQUEST_HEADER(PROTOCOL_THREAD, TAG_THREAD + tid),
		.pid = (int32_t)tid,
	};
	uint64_t *at = state_thread_slot(s, tid);

	if (s->fd == 0)
		return false;
	if (!is_new && *at >> 32 == tid) {
		receive_all(s);
		return true;
	}
	if (!send_message(s, &m, sizeof(m)))
		return false;
	store(at, (uint64_t)tid << 32);
	return true;
}

int connection_wait(struct state *s, int timeout_ms)
{
	struct pollfd p = {.fd = s->fd - 1, .events = POLLIN};

	int n;

	if (p.fd < 0)
		return -ENOTCONN;
	n = poll(&p, 1, timeout_ms);
	if (n < 0 && errno != EINTR)
		return -errno;
	return n == 0 ? -ETIMEDOUT : 0;
}
