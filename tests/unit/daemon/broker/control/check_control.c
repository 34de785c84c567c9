/*
 * What a peer of the socket can do, and when its connection is closed. The test is the peer, and
 * has a struct control_handler that records the requests: in asked, last, seen and gone.
 */
#include "daemon/broker/control/control.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/broker/control/user_quota.h"
#include "daemon/process/peer.h"
#include "lib/base/clock.h"
#include "lib/base/ipc.h"
#include "tests/unit/daemon/lingering.h"
#include "tests/unit/suite.h"

/* Since Linux 6.16. */
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

static char dir[] = "/tmp/check_control.XXXXXX";
static char path[128];
static struct loop *loop;
static struct control *control;
static size_t asked, asked_again, gone;
static bool defers; /* the handler defers its answer to PROTOCOL_RELEASE */
static uint64_t waited_ns;
static struct peer seen;
static struct protocol_request last;

static void ask(void *ctx, struct control_peer *peer, const struct protocol_request *m,
		struct control_answer *ret)
{
	ck_assert_ptr_eq(ctx, &asked);
	asked++;
	last = *m;
	seen = peer->identity;
	ret->m.result = PROTOCOL_NOT_SAMPLED;
	if (m->h.type == PROTOCOL_STATUS) {
		ret->fd = memfd_create("status", MFD_CLOEXEC);
		ret->work = USER_QUOTA_AT_ONCE;
	}
	ret->is_deferred = m->h.type == PROTOCOL_RELEASE && defers;
	ret->note = 77;
}

static void go_on(void *ctx, struct control_peer *peer, const struct protocol_request *m,
		  uint64_t ns, struct control_answer *ret)
{
	ck_assert_ptr_eq(ctx, &asked);
	ck_assert_int_eq(peer->identity.pid, getpid());
	ck_assert_uint_eq(m->h.type, PROTOCOL_RELEASE);
	ck_assert_uint_eq(ret->note, 77 + asked_again);
	ck_assert_int_eq(ret->fd, -1);
	asked_again++;
	waited_ns = ns;
	ret->note++;
	ret->is_deferred = defers;
	ret->m.result = PROTOCOL_TIMED_OUT;
}

static int page(void *ctx, struct control_peer *peer, int *ret_fd)
{
	(void)ctx;
	peer->handler_data = &seen;
	*ret_fd = memfd_create("page", MFD_CLOEXEC);
	return 0;
}

static void on_gone(void *ctx, struct control_peer *peer)
{
	(void)ctx;
	(void)peer;
	gone++;
}

static const struct control_handler handler = {ask, go_on, page, on_gone};

static void set_up(void)
{
	ck_assert_ptr_nonnull(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/new/profd.sock", dir);
	OK(loop_new(&loop));
	OK(control_new(path, &handler, &asked, geteuid(), &control));
	OK(control_start(control, loop));
}

static void tear_down(void)
{
	struct stat st;
	char lock[160], *end;

	control_free(control);
	loop_free(loop);
	ck_assert_int_lt(stat(path, &st), 0);
	(void)snprintf(lock, sizeof(lock), "%s.lock", path);
	OK(unlink(lock));
	end = strrchr(path, '/');
	*end = '\0';
	OK(rmdir(path));
	OK(rmdir(dir));
}

static void turn(void)
{
	OK(loop_run_once(loop, 0));
}

static int dial(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(address.sun_path, path, strlen(path));
	ck_assert_int_ge(fd, 0);
	OK(connect(fd, (struct sockaddr *)&address, sizeof(address)));
	return fd;
}

static void say_hello(int fd, uint32_t version, uint32_t flags)
{
	const struct protocol_hello m = {
		.h = {PROTOCOL_HELLO, sizeof(m), 9},
		.magic = PROTOCOL_MAGIC,
		.version = version,
		.flags = flags,
	};

	ck_assert_int_eq(send(fd, &m, sizeof(m), 0), sizeof(m));
	turn(); /* accepts the connection */
	turn();
}

/* Receives the answer to the request with this tag, and closes its n_fds descriptors. */
static struct protocol_answer take(int fd, uint32_t tag, size_t n_fds)
{
	struct protocol_answer answer;
	struct ipc_message m;

	ck_assert_int_eq(ipc_recv(fd, &m), 1);
	ck_assert_uint_eq(m.size, sizeof(answer));
	ck_assert_uint_eq(m.n_fds, n_fds);
	memcpy(&answer, m.bytes, sizeof(answer));
	ipc_close_fds(&m);
	ck_assert_uint_eq(answer.h.type, PROTOCOL_ANSWER);
	ck_assert_uint_eq(answer.h.size, sizeof(answer));
	ck_assert_uint_eq(answer.h.tag, tag);
	return answer;
}

/* Returns a connection whose HELLO was answered. */
static int greeted(void)
{
	int fd = dial();

	say_hello(fd, PROTOCOL_VERSION, 0);
	(void)take(fd, 9, 0);
	return fd;
}

static ssize_t request(int fd, uint32_t type, uint32_t tag)
{
	const struct protocol_request m = {.h = {type, sizeof(m), tag}};

	return send(fd, &m, sizeof(m), MSG_NOSIGNAL);
}

static bool is_readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static bool is_closed(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1 && (p.revents & POLLHUP);
}

FIXTURE(set_up, tear_down)

TEST(a_request_reaches_the_handler_and_is_answered)
{
	int fd = greeted();

	ck_assert_int_gt(request(fd, PROTOCOL_START, 3), 0);
	turn();
	ck_assert_uint_eq(asked, 1);
	ck_assert_uint_eq(last.h.type, PROTOCOL_START);
	ck_assert_int_eq(seen.pid, getpid());
	ck_assert_uint_eq(seen.uid, geteuid());
	ck_assert_uint_gt(seen.start_ticks, 0);
	ck_assert(seen.is_operator);
	ck_assert_uint_eq(take(fd, 3, 0).result, PROTOCOL_NOT_SAMPLED);
	/* Without a tag there is no answer. */
	ck_assert_int_gt(request(fd, PROTOCOL_SPANS_OPEN, 0), 0);
	ck_assert_int_gt(request(fd, PROTOCOL_STOP, 4), 0);
	turn();
	ck_assert_uint_eq(asked, 3);
	(void)take(fd, 4, 0);
	close(fd);
	turn();
	ck_assert_uint_eq(gone, 1);
}

TEST(a_peer_with_a_newer_version_stays_connected)
{
	int fd = dial();

	say_hello(fd, 77, PROTOCOL_WANT_PAGE);
	ck_assert_uint_eq(take(fd, 9, 1).version, PROTOCOL_VERSION);
	ck_assert_int_gt(request(fd, PROTOCOL_TYPE_END, 5), 0);
	turn();
	ck_assert_uint_eq(take(fd, 5, 0).result, PROTOCOL_BAD_VERSION);
	ck_assert_uint_eq(asked, 0);
	ck_assert(!is_closed(fd));
	close(fd);
}

TEST(a_peer_that_sends_an_invalid_message_is_disconnected)
{
	static const char long_one[PROTOCOL_SIZE_MAX + 50];
	int silent = dial(), fd;

	turn();
	for (size_t size = 1; size <= sizeof(long_one); size += 40) {
		fd = greeted();
		ck_assert_int_eq(send(fd, long_one, size, 0), (ssize_t)size);
		turn();
		ck_assert(is_closed(fd));
		close(fd);
	}
	fd = dial();
	ck_assert_int_gt(request(fd, PROTOCOL_STATUS, 1), 0);
	turn();
	turn();
	ck_assert(is_closed(fd));
	ck_assert_uint_eq(asked, 0);
	ck_assert(!is_closed(silent));
	close(fd);
	close(silent);
}

TEST(a_descriptor_that_a_peer_sends_is_closed)
{
	const struct protocol_request m = {.h = {PROTOCOL_START, sizeof(m), 1}};
	int fd = greeted(), pipe_fds[2];
	char byte;

	OK(pipe2(pipe_fds, O_CLOEXEC));
	/* The kernel refuses the descriptor, or the daemon disconnects the peer. */
	(void)!ipc_send(fd, &m, sizeof(m), &pipe_fds[1], 1);
	close(pipe_fds[1]);
	turn();
	ck_assert_int_eq(read(pipe_fds[0], &byte, 1), 0);
	close(pipe_fds[0]);
	close(fd);
}

static bool kernel_refuses_descriptors(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), off = 0;
	int r = setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off));

	close(fd);
	return r == 0;
}

/* One connection in a message that is read, and one in a message that is left. */
TEST(a_peer_does_not_hang_the_broker_by_its_connections)
{
	const struct protocol_request m = {.h = {PROTOCOL_START, sizeof(m), 1}};
	const struct linger none = {.l_onoff = 1};
	int fd = greeted(), listener, connection = lingering(&listener);

	if (kernel_refuses_descriptors()) {
		ck_assert_int_eq(ipc_send(fd, &m, sizeof(m), &connection, 1), -EPERM);
		OK(setsockopt(connection, SOL_SOCKET, SO_LINGER, &none, sizeof(none)));
	} else {
		for (int i = 0; i < 2; i++)
			OK(ipc_send(fd, &m, sizeof(m), &connection, 1));
	}
	close(connection);
	turn();
	ck_assert_uint_eq(asked, 0);
	close(fd);
	close(listener);
}

TEST(a_peer_that_reads_no_answers_is_disconnected)
{
	int fd = greeted(), other = greeted();
	uint64_t now_ns = clock_mono_ns();

	for (int i = 0; i < 100000 && !is_closed(fd); i++) {
		if (request(fd, PROTOCOL_START, 1) < 0)
			ck_assert(errno == EAGAIN || errno == EPIPE);
		turn();
		now_ns += NS_PER_SEC;
		control_check(control, now_ns);
	}
	ck_assert(is_closed(fd));
	ck_assert_uint_eq(gone, 1);
	ck_assert_int_gt(request(other, PROTOCOL_START, 2), 0);
	turn();
	(void)take(other, 2, 0);
	close(fd);
	close(other);
}

TEST(a_request_above_the_quota_is_handled_later)
{
	int fd = greeted();

	ck_assert_int_gt(request(fd, PROTOCOL_STATUS, 1), 0);
	ck_assert_int_gt(request(fd, PROTOCOL_START, 2), 0);
	turn();
	(void)take(fd, 1, 1);
	ck_assert_uint_eq(asked, 1);
	turn();
	ck_assert_uint_eq(asked, 1);
	/* Far enough in the future for the debt to be paid. */
	control_check(control, clock_mono_ns() + 10 * NS_PER_SEC);
	turn();
	ck_assert_uint_eq(asked, 2);
	(void)take(fd, 2, 0);
	close(fd);
}

/* The answer comes later; until then the connection is not read, and others are. */
TEST(answers_that_are_deferred_keep_the_order)
{
	int fd = greeted(), other = greeted();

	control_check(control, 5 * NS_PER_SEC);
	defers = true;
	ck_assert_int_gt(request(fd, PROTOCOL_RELEASE, 3), 0);
	ck_assert_int_gt(request(fd, PROTOCOL_START, 4), 0);
	turn();
	ck_assert_uint_eq(asked, 1);
	for (size_t n = 1; n < 4; n++) {
		control_check(control, (5 + n) * NS_PER_SEC);
		turn();
		ck_assert_uint_eq(asked_again, n);
		ck_assert_uint_eq(waited_ns, n * NS_PER_SEC);
	}
	ck_assert_uint_eq(asked, 1);
	ck_assert(!is_readable(fd));
	ck_assert_int_gt(request(other, PROTOCOL_START, 1), 0);
	turn();
	(void)take(other, 1, 0);
	defers = false;
	control_check(control, 10 * NS_PER_SEC);
	ck_assert_uint_eq(take(fd, 3, 0).result, PROTOCOL_TIMED_OUT);
	turn();
	ck_assert_uint_eq(asked, 3);
	(void)take(fd, 4, 0);
	control_check(control, 11 * NS_PER_SEC);
	ck_assert_uint_eq(asked_again, 4);
	close(fd);
	close(other);
}

/* _i: 1: the request has no tag, so no answer is sent. */
TESTS(a_peer_that_disconnects_while_its_answer_is_deferred_is_noticed_later, 2)
{
	int fd = greeted();

	defers = true;
	ck_assert_int_gt(request(fd, PROTOCOL_RELEASE, _i == 1 ? 0 : 3), 0);
	turn();
	close(fd);
	control_check(control, clock_mono_ns());
	turn();
	ck_assert_uint_eq(gone, 0);
	defers = false;
	control_check(control, clock_mono_ns());
	turn();
	control_check(control, clock_mono_ns());
	turn();
	ck_assert_uint_eq(gone, 1);
}

TEST(freeing_closes_a_connection_whose_answer_is_deferred)
{
	int fd = greeted();

	defers = true;
	ck_assert_int_gt(request(fd, PROTOCOL_RELEASE, 3), 0);
	turn();
	control_free(control);
	control = NULL;
	ck_assert_uint_eq(gone, 1);
	ck_assert(is_closed(fd));
	close(fd);
}

/* What a newer version asks for is refused, and costs as much as a small message. */
TEST(unknown_requests_use_up_the_quota)
{
	int fd = dial(), n = 0;

	say_hello(fd, 77, 0);
	(void)take(fd, 9, 0);
	while (n < USER_QUOTA_AT_ONCE && request(fd, PROTOCOL_TYPE_END, 1) > 0) {
		turn();
		if (!is_readable(fd))
			break;
		(void)take(fd, 1, 0);
		n++;
	}
	ck_assert_int_eq(n, USER_QUOTA_AT_ONCE - 1);
	close(fd);
}

/* A user who connects and disconnects without end is served later. */
TEST(connections_use_up_the_quota)
{
	int fd;

	for (int i = 0; i < USER_QUOTA_AT_ONCE; i++) {
		fd = dial();
		turn();
		close(fd);
		turn();
	}
	fd = dial();
	say_hello(fd, PROTOCOL_VERSION, 0);
	ck_assert(!is_readable(fd));
	control_check(control, clock_mono_ns() + NS_PER_SEC);
	turn();
	(void)take(fd, 9, 0);
	close(fd);
}

TEST(a_process_with_too_many_connections_gets_no_more)
{
	int fds[USER_QUOTA_PROCESS_MAX], fd;

	for (size_t i = 0; i < USER_QUOTA_PROCESS_MAX; i++)
		fds[i] = greeted();
	fd = dial();
	turn();
	ck_assert(is_closed(fd));
	close(fd);
	close(fds[0]);
	turn();
	fds[0] = greeted();
	for (size_t i = 0; i < USER_QUOTA_PROCESS_MAX; i++)
		close(fds[i]);
	turn();
	ck_assert_uint_eq(gone, USER_QUOTA_PROCESS_MAX + 1);
}

TEST(freeing_closes_all_connections)
{
	int fd = greeted(), silent = dial();

	turn();
	control_free(control);
	control = NULL;
	ck_assert_uint_eq(gone, 1);
	ck_assert(is_closed(fd) && is_closed(silent));
	close(fd);
	close(silent);
}
