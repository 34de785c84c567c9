/* What capture does when a message to the broker cannot be sent. */
#include "daemon/capture/broker_link.h"

#include <errno.h>
#include <sys/socket.h>

#include "tests/unit/daemon/log_capture.h"
#include "tests/unit/suite.h"

/* The error of each call of send(2) and sendmsg(2). These take the place of libc's. */
static int error;

ssize_t send(int fd, const void *bytes, size_t size, int flags)
{
	(void)fd;
	(void)bytes;
	(void)size;
	(void)flags;
	errno = error;
	return -1;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	(void)fd;
	(void)message;
	(void)flags;
	errno = error;
	return -1;
}

static void born(void)
{
	(void)broker_link_born(1);
}

/* Returns how many lines fn() logs before it exits with 1. */
static unsigned int lines_of(void (*fn)(void), int with_error)
{
	error = with_error;
	return log_capture_exit(fn, "cannot send to sentry-profd: ");
}

TEST(a_message_that_cannot_be_sent_is_logged)
{
	ck_assert_uint_eq(lines_of(broker_link_done, ENOBUFS), 1);
	ck_assert_uint_eq(lines_of(born, EACCES), 1);
}

TEST(the_end_of_the_broker_is_not_logged)
{
	ck_assert_uint_eq(lines_of(broker_link_done, EPIPE), 0);
	ck_assert_uint_eq(lines_of(born, EPIPE), 0);
	ck_assert_uint_eq(lines_of(born, ECONNRESET), 0);
}

TEST(a_birth_is_sent_again_after_a_lack_of_memory)
{
	error = ENOMEM;
	ck_assert(!broker_link_born(1));
	error = ENOBUFS;
	ck_assert(!broker_link_born(1));
	error = EAGAIN;
	ck_assert(!broker_link_born(1));
}
