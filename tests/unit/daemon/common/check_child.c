/* What a child process says when it cannot start. */
#include "daemon/common/child.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/daemon/log_capture.h"
#include "tests/unit/suite.h"

/* The error of each call of sendmsg(2) and recvmsg(2). These take the place of libc's. */
static int error;

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	(void)fd;
	(void)message;
	(void)flags;
	errno = error;
	return -1;
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	(void)fd;
	(void)message;
	(void)flags;
	errno = error;
	return -1;
}

static void start(void)
{
	static char name[] = "name";
	static char *argv[] = {name, NULL};
	struct ipc_message init;
	int pair[2];

	OK(ipc_pair(pair));
	ck_assert_int_eq(dup2(pair[0], MSG_FD), MSG_FD);
	(void)child_start(1, argv, "name", NULL, &init);
}

/* Returns how often the line occurs that fn() logs before it exits with 1. */
static unsigned int said(void (*fn)(void), int with_error, const char *line)
{
	error = with_error;
	return log_capture_exit(fn, line);
}

TEST(a_first_message_that_cannot_be_received_is_logged)
{
	ck_assert_uint_eq(said(start, ENOMEM, "first message of sentry-profd: Cannot"), 1);
	/* The broker has ended. */
	ck_assert_uint_eq(said(start, ECONNRESET, "message"), 0);
}

TEST(a_first_message_that_cannot_be_sent_is_logged)
{
	ck_assert_uint_eq(said(child_send_ready, ENOBUFS, "send to the parent process: No"), 1);
	ck_assert_uint_eq(said(child_send_ready, EPIPE, "send"), 0);
}
