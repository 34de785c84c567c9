/* What a child that was taken over can send: messages without end, and descriptors. */
#include "daemon/broker/children/child.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/loop.h"
#include "tests/unit/daemon/broker/broker_builder.h"
#include "tests/unit/daemon/lingering.h"
#include "tests/unit/suite.h"

static struct broker b;
static struct unwind unwind;
static int end;
static uint64_t n_read, began_ns;

static void on_message(void *ctx, struct child *child, struct ipc_message *m)
{
	(void)ctx, (void)child, (void)m;
	n_read++;
}

/* So many calls of sendmsg(2) fail with this error. */
static unsigned int sends_fail;
static int send_error;

/* In place of that of libc, which child_send() would call. */
ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	if (sends_fail == 0)
		return syscall(SYS_sendmsg, fd, m, flags);
	sends_fail--;
	errno = send_error;
	return -1;
}

/* The error of the next call of recvmsg(2); 0: none. In place of that of libc, too. */
static int receive_error;

ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
	if (receive_error == 0)
		return syscall(SYS_recvmsg, fd, m, flags);
	errno = receive_error;
	receive_error = 0;
	return -1;
}

static void set_up(void)
{
	build_broker(&b);
	b.modules.children.events.message = on_message;
	OK(loop_new(&b.modules.state.loop));
	end = build_unwind(&b, &unwind);
	ck_assert_int_eq(fcntl(end, F_SETFL, O_NONBLOCK), 0);
	ck_assert_int_eq(fcntl(unwind.child.fd, F_SETFL, O_NONBLOCK), 0);
	OK(loop_add(b.modules.state.loop, unwind.child.fd, child_on_readable, &unwind.child,
		    &unwind.child.source));
	sends_fail = 0;
	n_read = 0;
	began_ns = clock_mono_ns();
}

static void tear_down(void)
{
	child_close(&unwind.child);
	close_fd(&end);
	loop_free(b.modules.state.loop);
}

/* Fills the socket, and has the broker read a message. */
static void flood(void)
{
	const struct msg_id m = {.h = MSG_HEADER(MSG_READY)};

	while (ipc_send(end, &m, sizeof(m), NULL, 0) == 0)
		continue;
	OK(loop_run_once(b.modules.state.loop, 0));
}

/* No more than a second's messages at once, and then as many as time has passed for. */
static void check_number(void)
{
	const uint64_t ns = clock_mono_ns() - began_ns;

	ck_assert_uint_le(n_read, CHILD_MESSAGES_HZ + ns / (NS_PER_SEC / CHILD_MESSAGES_HZ));
}

FIXTURE(set_up, tear_down)

TEST(a_flood_is_read_slowly)
{
	while (!unwind.child.is_slowed) {
		flood();
		check_number();
	}
	/* The socket is full, and is not read. */
	n_read = 0;
	for (int i = 0; i < 100; i++)
		flood();
	ck_assert_uint_eq(n_read, 0);
}

TEST(a_flood_is_read_on)
{
	for (int turns = 0; turns < 3; turns++) {
		while (!unwind.child.is_slowed)
			flood();
		while (unwind.child.is_slowed)
			child_check_slowed(&unwind.child);
		n_read = 0;
		flood();
		ck_assert_uint_eq(n_read, 1);
	}
}

/* As a ship that was taken over: _i valid messages, and then two with a connection. */
TESTS(a_ship_does_not_hang_the_broker_by_its_connections, 2)
{
	const struct msg_id m = {.h = MSG_HEADER(MSG_READY)};
	int listener, status, fd = lingering(&listener);

	unwind.child.type = &child_types[CHILD_SHIP];
	unwind.child.pid = fork();
	if (unwind.child.pid == 0)
		for (;;)
			(void)pause();
	for (int i = 0; i < _i; i++)
		OK(ipc_send(end, &m, sizeof(m), NULL, 0));
	for (int i = 0; i < 2; i++)
		OK(ipc_send(end, &m, sizeof(m), &fd, 1));
	close_fd(&fd);
	for (int i = 0; i <= _i; i++)
		OK(loop_run_once(b.modules.state.loop, 0));
	ck_assert_uint_eq(n_read, (uint64_t)_i);
	ck_assert_int_eq(unwind.child.state, CHILD_KILLED);
	ck_assert_int_lt(unwind.child.fd, 0);
	ck_assert_int_eq(waitpid(unwind.child.pid, &status, 0), unwind.child.pid);
	close_fd(&listener);
}

/* The end of a process: what it has sent is read, however much it is. */
static void expect_message(uint32_t id)
{
	struct ipc_message m;

	ck_assert_int_eq(ipc_recv(end, &m), 1);
	ck_assert_uint_eq(((const struct msg_id *)(const void *)m.bytes)->id, id);
}

TESTS(a_message_is_sent_when_a_shortage_of_the_kernel_has_passed, 3)
{
	/* Nothing is killed. */
	unwind.child.pid = 0;
	send_error = (const int[]){ENOBUFS, ENOMEM, ETOOMANYREFS}[_i];
	sends_fail = 4;
	child_send_id(&unwind.child, MSG_SESSION_CLOSE, 1);
	child_send_id(&unwind.child, MSG_SESSION_CLOSE, 2);
	expect_message(1);
	expect_message(2);
}

/* The message stays in the socket, and the child is not to blame. */
TESTS(a_message_is_received_when_a_shortage_has_passed, 2)
{
	const struct msg_id m = {.h = MSG_HEADER(MSG_READY)};

	unwind.child.pid = fork();
	if (unwind.child.pid == 0)
		for (;;)
			(void)pause();
	OK(ipc_send(end, &m, sizeof(m), NULL, 0));
	receive_error = (const int[]){ENOMEM, ENOBUFS}[_i];
	OK(loop_run_once(b.modules.state.loop, 0));
	ck_assert_int_eq(receive_error, 0);
	ck_assert_uint_eq(n_read, 0);
	ck_assert_int_ne(unwind.child.state, CHILD_KILLED);
	OK(loop_run_once(b.modules.state.loop, 0));
	ck_assert_uint_eq(n_read, 1);
	ck_assert(child_kill(&unwind.child));
}

TEST(the_broker_does_not_wait_long_for_the_end_of_a_shortage)
{
	send_error = ENOBUFS;
	sends_fail = UINT_MAX;
	unwind.child.pid = 0;
	child_send_id(&unwind.child, MSG_SESSION_CLOSE, 1);
	ck_assert_uint_eq(UINT_MAX - sends_fail, 6);
}

TEST(the_last_messages_are_all_read)
{
	const struct msg_id m = {.h = MSG_HEADER(MSG_READY)};
	uint64_t n = 0;

	while (!unwind.child.is_slowed)
		flood();
	while (ipc_recv(unwind.child.fd, &(struct ipc_message){.size = 0}) > 0)
		continue;
	while (ipc_send(end, &m, sizeof(m), NULL, 0) == 0)
		n++;
	n_read = 0;
	child_read_last(&unwind.child);
	ck_assert_uint_eq(n_read, n);
}
