#include "daemon/common/control_client.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "daemon/common/log.h"
#include "lib/base/digits.h"
#include "lib/base/ipc.h"

/* Timeout of an answer. A daemon on a busy machine, and a detach (25 s), need less. */
#define ANSWER_S 60

/* The largest text with an answer: 10,000 targets with a line each. */
#define BYTES_MAX (16u << 20)

const char *control_client_path(const char *given)
{
	const char *path = given;

	if (path == NULL)
		path = getenv(PROTOCOL_SOCKET_ENV);
	return path == NULL || *path == '\0' ? PROTOCOL_SOCKET : path;
}

static void log_not_connected(const char *path, int error)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR:
		log_error("sentry-profd does not run here: there is no socket %s (systemctl start "
			  "sentry-profd starts the service; --socket gives another path)",
			  path);
		break;
	case ECONNREFUSED:
		log_error("sentry-profd does not run: no process listens at %s (systemctl start "
			  "sentry-profd starts the service)",
			  path);
		break;
	case EACCES:
	case EPERM:
		log_error("not permitted to connect to %s: only root, and users that the modes of "
			  "the socket and its directory admit, may connect (run this command as "
			  "root)",
			  path);
		break;
	case EPROTOTYPE:
	case ENOTSOCK:
		log_error("%s is not sentry-profd's socket (--socket gives another path)", path);
		break;
	default:
		log_error("cannot connect to %s: %s", path, strerror(error));
		break;
	}
}

static void log_failed_request(const struct control_client *c, int error)
{
	if (c->is_quiet)
		return;
	if (error == EAGAIN)
		log_error("sentry-profd at %s has not answered for %u s: it hangs, or gets no "
			  "processor time",
			  c->path, c->answer_s);
	else if (error == EPIPE)
		log_error("sentry-profd at %s has closed the connection: it is ending or has died "
			  "(its log says why), or this user has too many connections",
			  c->path);
	else
		log_error("the connection to sentry-profd at %s failed: %s", c->path,
			  strerror(error));
}

static int connect_socket(const char *path, unsigned int seconds, int *ret_fd)
{
	const struct timeval timeout = {.tv_sec = seconds};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t n = strlen(path);
	int fd, r = 0;

	if (n >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, n + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* SO_SNDTIMEO holds for connect(2), too, which waits if the queue is full. */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) < 0 ||
	    connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		r = -errno;
	if (r < 0)
		close_fd(&fd);
	else
		*ret_fd = fd;
	return r;
}

int32_t control_client_pid(const struct control_client *c)
{
	struct ucred daemon;
	socklen_t size = sizeof(daemon);

	return getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &daemon, &size) < 0 ? 0 : daemon.pid;
}

/* The tag of every request. A request with tag 0 gets no answer. */
#define TAG 1

static int receive_answer(struct control_client *c, struct protocol_answer *ret, int *ret_fd)
{
	struct ipc_message m;
	int r = ipc_recv(c->fd, &m);

	if (r <= 0)
		return r == 0 ? -EPIPE : r;
	/* The answer of a newer daemon may have further members, which are ignored. */
	if (m.size < sizeof(*ret)) {
		ipc_close_fds(&m);
		return -EPROTO;
	}
	memcpy(ret, m.bytes, sizeof(*ret));
	*ret_fd = ipc_take_fd(&m, 0);
	ipc_close_fds(&m);
	if (ret->h.type != PROTOCOL_ANSWER || ret->h.tag != TAG) {
		close_fd(ret_fd);
		return -EPROTO;
	}
	ret->text[sizeof(ret->text) - 1] = '\0';
	ret->profiler_id[sizeof(ret->profiler_id) - 1] = '\0';
	return 0;
}

static int exchange(struct control_client *c, const void *message, size_t size,
		    struct protocol_answer *ret, int *ret_fd)
{
	int r = ipc_send(c->fd, message, size, NULL, 0);

	if (r == 0)
		r = receive_answer(c, ret, ret_fd);
	if (r < 0)
		log_failed_request(c, -r);
	return r;
}

int control_client_open_briefly(const char *path, unsigned int seconds, bool is_quiet,
				struct control_client *ret)
{
	const struct protocol_hello hello = {
		.h = {PROTOCOL_HELLO, sizeof(hello), TAG},
		.magic = PROTOCOL_MAGIC,
		.version = PROTOCOL_VERSION,
	};
	struct control_client a = {
		.fd = -1, .path = path, .is_quiet = is_quiet, .answer_s = seconds};
	struct protocol_answer answer;
	int fd = -1, r;

	r = connect_socket(path, seconds, &a.fd);
	if (r < 0) {
		if (!is_quiet)
			log_not_connected(path, -r);
		return r;
	}
	r = exchange(&a, &hello, sizeof(hello), &answer, &fd);
	close_fd(&fd);
	if (r < 0)
		close_fd(&a.fd);
	else
		*ret = a;
	return r;
}

int control_client_open(const char *path, bool is_quiet, struct control_client *ret)
{
	return control_client_open_briefly(path, ANSWER_S, is_quiet, ret);
}

void control_client_close(struct control_client *c)
{
	close_fd(&c->fd);
}

int control_client_request(struct control_client *c, enum protocol_type type, int32_t pid,
			   const char *name, struct protocol_answer *ret, int *ret_fd)
{
	struct protocol_request m = {
		.h = {type, sizeof(m), TAG},
		.pid = pid,
	};
	size_t n = name == NULL ? 0 : strlen(name);

	/* Callers check the name's length, and no section of the daemon has a longer name. */
	if (n >= sizeof(m.name))
		return -EINVAL;
	if (n > 0)
		memcpy(m.name, name, n);
	*ret_fd = -1;
	return exchange(c, &m, sizeof(m), ret, ret_fd);
}

int control_client_release(struct control_client *c, int32_t pid, uint32_t seconds,
			   struct protocol_answer *ret, int *ret_fd)
{
	const struct protocol_request m = {
		.h = {PROTOCOL_RELEASE, sizeof(m), TAG},
		.pid = pid,
		.seconds = seconds,
	};

	*ret_fd = -1;
	return exchange(c, &m, sizeof(m), ret, ret_fd);
}

int control_client_read(int fd, uint32_t size, struct buf *ret)
{
	buf_init(ret, BYTES_MAX);
	/* The descriptor shares its offset with the daemon's, which is at the end of the file. */
	return fd < 0 || size == 0 || lseek(fd, 0, SEEK_SET) < 0 ? -EPROTO : buf_read_fd(ret, fd);
}

bool control_client_parse_target(const char *command, const char *text, int32_t *ret_pid,
				 const char **ret_name)
{
	*ret_pid = 0;
	*ret_name = NULL;
	if (digits_pid(text, ret_pid))
		return true;
	if (text[0] != '\0' && strlen(text) < PROTOCOL_NAME_SIZE) {
		*ret_name = text;
		return true;
	}
	log_error("%s: neither a pid nor the name of a target, which has 1 to %d bytes: '%s'",
		  command, PROTOCOL_NAME_SIZE - 1, text);
	return false;
}

const char *control_client_result_text(enum protocol_result result)
{
	switch (result) {
	case PROTOCOL_RUNS_ALREADY:
		return "is profiled already";
	case PROTOCOL_NOT_RUNNING:
		return "is not profiled";
	case PROTOCOL_NOT_SAMPLED:
		return "is not sampled: profile_session_sample_rate left this process "
		       "out (attach profiles it anyway)";
	case PROTOCOL_TRACE_MODE:
		return "has profile_lifecycle = trace: its root spans start and stop "
		       "profiling";
	case PROTOCOL_LEFT_OUT:
		return "is left out: it was detached, or made the profiler hang (attach "
		       "profiles it again)";
	case PROTOCOL_DENIED:
		return "not permitted: only root and the group sentry-profd may, and "
		       "each user for processes of the same user";
	case PROTOCOL_NO_PROCESS:
		return "there is no such process";
	case PROTOCOL_NO_TARGET:
		return "is no target of sentry-profd (attach makes a process a target)";
	case PROTOCOL_BAD_VERSION:
		return "the daemon is older and does not support this request";
	case PROTOCOL_BUSY:
		return "too many requests at a time: try again";
	case PROTOCOL_TIMED_OUT:
		return "is still traced by sentry-profd";
	case PROTOCOL_FAILED:
		return "the request failed, and sentry-profd gives no reason: its log may have "
		       "one";
	case PROTOCOL_OK:
		break;
	}
	return "the daemon's answer is unknown: it may be a newer version";
}
