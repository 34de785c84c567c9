#include "lib/client/release.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "lib/client/state.h"

/* The daemon answers within 25 s. More than 5 s longer it has no processor time, or is stopped. */
#define ANSWER_NS (30 * NS_PER_SEC)

#define TAG 1

static int send_message(int fd, const void *message, size_t size)
{
	if (send(fd, message, size, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return 0;
	return errno == EPIPE ? -ECONNRESET : -errno;
}

/* Without a tag HELLO has no answer. */
static int send_request(int fd, uint32_t seconds)
{
	const struct protocol_hello hello = {
		.h = {.type = PROTOCOL_HELLO, .size = sizeof(hello)},
		.magic = PROTOCOL_MAGIC,
		.version = PROTOCOL_VERSION,
	};
	const struct protocol_request m = {
		.h = {.type = PROTOCOL_RELEASE, .size = sizeof(m), .tag = TAG},
		.seconds = seconds,
	};
	int r = send_message(fd, &hello, sizeof(hello));

	return r == 0 ? send_message(fd, &m, sizeof(m)) : r;
}

static int wait_readable(int fd, uint64_t end_ns)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	const uint64_t now_ns = state_now_ns();
	const int ms = now_ns >= end_ns ? 0 : (int)((end_ns - now_ns) / NS_PER_MS) + 1;

	return poll(&p, 1, ms) == 0 ? -ETIMEDOUT : 0;
}

static int receive_answer(int fd, struct protocol_answer *ret)
{
	const uint64_t end_ns = state_now_ns() + ANSWER_NS;
	ssize_t n = -1;
	int r = 0;

	errno = EAGAIN;
	while (r == 0 && n < 0 && (errno == EAGAIN || errno == EINTR)) {
		r = wait_readable(fd, end_ns);
		n = recv(fd, ret, sizeof(*ret), MSG_DONTWAIT);
	}
	/* An answer that came in the last moment is an answer. */
	if (n < 0)
		return r < 0 ? r : -errno;
	if (n == 0)
		return -ECONNRESET;
	return (size_t)n == sizeof(*ret) && ret->h.type == PROTOCOL_ANSWER && ret->h.tag == TAG
		       ? 0
		       : -EPROTO;
}

int release_request(int fd, uint32_t seconds)
{
	struct protocol_answer answer;
	int r = send_request(fd, seconds);

	if (r == 0)
		r = receive_answer(fd, &answer);
	if (r < 0)
		return r;
	switch ((enum protocol_result)answer.result) {
	case PROTOCOL_OK:
	case PROTOCOL_LEFT_OUT:
		return answer.count == 0 ? 0 : -EBUSY;
	case PROTOCOL_TIMED_OUT:
		return -ETIMEDOUT;
	case PROTOCOL_FAILED:
		return -ECANCELED;
	case PROTOCOL_BAD_VERSION:
		return -EOPNOTSUPP;
	case PROTOCOL_NO_PROCESS:
		return -ESRCH;
	case PROTOCOL_RUNS_ALREADY:
	case PROTOCOL_NOT_RUNNING:
	case PROTOCOL_NOT_SAMPLED:
	case PROTOCOL_TRACE_MODE:
	case PROTOCOL_DENIED:
	case PROTOCOL_NO_TARGET:
	case PROTOCOL_BUSY:
		break;
	}
	return -EPROTO;
}
