#include "daemon/msg/msg_io.h"

#include <fcntl.h>
#include <string.h>

#include "daemon/msg/msg.h"
#include "daemon/msg/msg_ship.h"
#include "daemon/msg/msg_unwind.h"
#include "tests/unit/suite.h"

static int handled; /* 1: take_dsn() was called; 2: take_table(); 0: neither */

static int take_dsn(void *ctx, struct ipc_message *m)
{
	(void)m;
	handled = 1;
	return *(int *)ctx;
}

static int take_table(void *ctx, struct ipc_message *m)
{
	int fd = ipc_take_fd(m, 0);

	(void)ctx;
	ck_assert_int_ge(fd, 0);
	close_fd(&fd);
	handled = 2;
	return 0;
}

static const struct msg_rule rules[] = {
	{MSG_DSN, take_dsn},
	{MSG_TABLE, take_table},
};

/* Passes a message with n_fds descriptors to msg_handle(). take_dsn() returns ctx. */
static int handle(const void *message, size_t size, size_t n_fds, int ctx)
{
	struct ipc_message m = {.size = size, .n_fds = n_fds};
	int r;

	for (size_t i = 0; i < IPC_FDS_MAX; i++)
		m.fds[i] = i < n_fds ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
	memcpy(m.bytes, message, size);
	handled = 0;
	r = msg_handle(rules, 2, &ctx, &m);
	ipc_close_fds(&m);
	return r;
}

TEST(messages_go_to_the_handler_of_their_type)
{
	const struct msg_dsn dsn = {.h = MSG_HEADER(MSG_DSN)};
	const struct msg_table table = {.h = MSG_HEADER(MSG_TABLE)};

	OK(handle(&dsn, sizeof(dsn), 0, 0));
	ck_assert_int_eq(handled, 1);
	ck_assert_int_eq(handle(&dsn, sizeof(dsn), 0, -ENOMEM), -ENOMEM);
	OK(handle(&table, sizeof(table), 1, 0));
	ck_assert_int_eq(handled, 2);
	OK(handle(&table, sizeof(table), 2, 0));
	ck_assert_int_eq(handled, 2);
}

static void refuse(const void *message, size_t size, size_t n_fds)
{
	ck_assert_int_eq(handle(message, size, n_fds, 0), -EPROTO);
	ck_assert_int_eq(handled, 0);
}

TEST(malformed_and_unexpected_messages_are_refused)
{
	struct msg_table table = {.h = MSG_HEADER(MSG_TABLE)};

	refuse(&table, sizeof(table), 0);     /* a descriptor is missing */
	refuse(&table, sizeof(table) - 4, 1); /* shorter than it says */
	table.h.size = sizeof(table) - 4;
	refuse(&table, sizeof(table), 1);
	refuse(&table, sizeof(table) - 4, 1); /* shorter than its type */
	table.h = (struct msg_header){MSG_FILE_REQUEST, sizeof(table)};
	refuse(&table, sizeof(table), 1); /* not expected here */
	refuse(&table, 4, 1);		  /* no header */
	refuse(&table, 0, 0);
}
