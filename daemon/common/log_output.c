#include "daemon/common/log_output.h"

#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/util.h"

static enum {
	OUTPUT_WRITES, /* write(2) does not wait, or may */
	OUTPUT_SENDS,  /* stderr is a socket, such as the journal's */
	/*
	 * stderr is a pipe that cannot be opened anew, since another user made it. The bytes go
	 * through a pipe of our own: splice(2) has a flag not to wait, and write(2) has none. Each
	 * line takes a buffer of the pipe, which has 16.
	 */
	OUTPUT_SPLICES,
	/*
	 * stderr is a terminal that cannot be opened anew. If ^S stops it between poll(2) and
	 * write(2), the write waits.
	 */
	OUTPUT_POLLS,
} output;
static int own_pipe[2];

void log_output_never_waits(void)
{
	struct stat st;
	int fd;

	if (fstat(STDERR_FILENO, &st) < 0)
		return;
	if (S_ISSOCK(st.st_mode)) {
		output = OUTPUT_SENDS;
		return;
	}
	if (!S_ISFIFO(st.st_mode) && isatty(STDERR_FILENO) != 1)
		return;
	fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0)
		(void)dup2(fd, STDERR_FILENO);
	else if (S_ISFIFO(st.st_mode) && pipe2(own_pipe, O_CLOEXEC | O_NONBLOCK) == 0)
		output = OUTPUT_SPLICES;
	else
		output = OUTPUT_POLLS;
	close_fd(&fd);
}

/* Empties the pipe of our own into stderr, and drops the rest. */
static ssize_t splice_bytes(const char *bytes, size_t size)
{
	const ssize_t n = write(own_pipe[1], bytes, size);
	ssize_t sum = 0, moved = 1;
	char rest[4096];

	while (sum < n && moved > 0) {
		moved = splice(own_pipe[0], NULL, STDERR_FILENO, NULL, (size_t)(n - sum),
			       SPLICE_F_NONBLOCK);
		sum += moved > 0 ? moved : 0;
	}
	while (read(own_pipe[0], rest, sizeof(rest)) > 0)
		continue;
	return sum;
}

static bool has_room(void)
{
	struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};

	return poll(&p, 1, 0) == 1 && (p.revents & POLLOUT) != 0;
}

size_t log_output_write(const char *bytes, size_t size)
{
	ssize_t n = 0;

	switch (output) {
	case OUTPUT_WRITES:
		n = write(STDERR_FILENO, bytes, size);
		break;
	case OUTPUT_SENDS:
		n = send(STDERR_FILENO, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
		break;
	case OUTPUT_SPLICES:
		n = splice_bytes(bytes, size);
		break;
	case OUTPUT_POLLS:
		n = has_room() ? write(STDERR_FILENO, bytes, size) : 0;
		break;
	}
	return n < 0 ? 0 : (size_t)n;
}
