/* The moments at which a reader gets the head of its ring. Time is an argument, so they are exact.
 */
#include "daemon/capture/readers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/msg/msg.h"
#include "daemon/msg/msg_capture.h"
#include "lib/base/clock.h"
#include "lib/base/ipc.h"
#include "tests/unit/suite.h"

#define MS   NS_PER_MS
#define RING 7

static struct loop *loop;
static struct capture *capture;
static struct readers *readers;
static struct capture_sink *sink;
static int fds[2];

/* The error of the next call of recvmsg(2); 0: none. This function takes the place of libc's. */
static int recvmsg_error;

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	if (recvmsg_error == 0)
		return syscall(SYS_recvmsg, fd, message, flags);
	errno = recvmsg_error;
	recvmsg_error = 0;
	return -1;
}

static void no_event(void *ctx, uint32_t target, enum capture_event event)
{
	(void)ctx;
	(void)target;
	(void)event;
}

static bool may_break, is_broken;

static void no_break(uint32_t ring)
{
	if (!may_break)
		ck_abort_msg("ring %u is broken", ring);
	is_broken = true;
}

static void set_up(void)
{
	static struct capture_beat beat;
	const struct capture_options capture_options = {
		.now_ns = clock_mono_ns,
		.process_ns = clock_process_ns,
		.switches = clock_switches,
		.beat = &beat,
		.event = no_event,
	};
	struct readers_options options = {.broken = no_break};
	int ring_fd;

	OK(capture_new(&capture_options, &capture));
	OK(loop_new(&loop));
	options.loop = loop;
	options.capture = capture;
	OK(readers_new(&options, &readers));
	OK(ipc_pair(fds));
	ck_assert_int_ge(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
	OK(readers_make(readers, RING, fds[0], &ring_fd));
	close_fd(&ring_fd);
	sink = readers_sink(readers, RING);
	ck_assert_ptr_nonnull(sink);
}

static void add_record(size_t size)
{
	void *room;

	OK(ring_reserve(&sink->ring, size, &room));
	ring_commit(&sink->ring, 1, size);
}

/* Returns true if the head was sent at this tick. Then it must be the current head. */
static bool is_sent_at(uint64_t now_ns)
{
	struct ipc_message m;
	const struct msg_number *head = (const void *)m.bytes;
	int r;

	readers_tick(readers, now_ns);
	readers_send_first_heads(readers, now_ns);
	r = ipc_recv(fds[1], &m);
	if (r == -EAGAIN)
		return false;
	ck_assert_int_eq(r, 1);
	ck_assert_uint_eq(head->h.type, MSG_RING_HEAD);
	ck_assert_uint_eq(head->n, sink->ring.head);
	ck_assert_int_eq(ipc_recv(fds[1], &m), -EAGAIN);
	return true;
}

/* Returns the time from start_ns until the head is sent, in steps of 10 ms. */
static uint64_t sent_after(uint64_t start_ns)
{
	uint64_t now_ns = start_ns;

	do {
		now_ns += 10 * MS;
		add_record(64);
	} while (!is_sent_at(now_ns) && now_ns < start_ns + 5000 * MS);
	return now_ns - start_ns;
}

/*
 * Gives the ticks in which the target's program is new: those of its first samples, and up to 100
 * ms after the first of them. Returns the time of the last tick, after which heads are sent every
 * 100 ms.
 */
static uint64_t begun(uint64_t now_ns)
{
	for (int i = 10; i >= 0; i--) {
		add_record(64);
		ck_assert(is_sent_at(now_ns - (uint64_t)i * 10 * MS));
	}
	return now_ns;
}

FIXTURE(set_up, NULL)

TEST(heads_are_sent_more_often_while_something_is_new)
{
	const struct msg_stack_hint hint = {
		.h = MSG_HEADER(MSG_STACK_HINT),
	};
	uint64_t now_ns = begun(10000 * MS);

	/* The target is new for two seconds. */
	for (int i = 0; i < 18; i++, now_ns += 100 * MS)
		ck_assert_uint_eq(sent_after(now_ns), 100 * MS);
	ck_assert_uint_eq(sent_after(now_ns), 500 * MS);
	now_ns += 500 * MS;
	ck_assert_uint_eq(sent_after(now_ns), 500 * MS);
	now_ns += 500 * MS;
	/* A hint means that a thread is new, or uses more stack. */
	OK(ipc_send(fds[1], &hint, sizeof(hint), NULL, 0));
	OK(loop_run_once(loop, -1));
	ck_assert_uint_eq(sent_after(now_ns), 100 * MS);
}

TEST(the_head_is_sent_when_much_is_unread)
{
	uint64_t now_ns = begun(10000 * MS);

	now_ns += 10 * MS;
	add_record(1u << 17);
	ck_assert(!is_sent_at(now_ns));
	now_ns += 10 * MS;
	add_record(1u << 17);
	ck_assert(is_sent_at(now_ns));
	/* The head has not changed, so it is not sent. */
	ck_assert(!is_sent_at(now_ns + 5000 * MS));
}

/*
 * Checks that a new program begins at the tick of time now_ns, which is 100 ms after the last one
 * at which all heads were sent.
 */
static void check_first_heads(uint64_t now_ns)
{
	const uint64_t end_ns = now_ns + 100 * MS;
	uint64_t sent_ns = now_ns;

	for (int i = 0; i < 3; i++, now_ns += 1 * MS) {
		add_record(64);
		ck_assert(is_sent_at(now_ns));
		sent_ns = now_ns;
	}
	/* The rate is higher than that of heads. */
	for (; now_ns < end_ns; now_ns += 1 * MS) {
		add_record(64);
		ck_assert_int_eq(is_sent_at(now_ns), now_ns - sent_ns == 5 * MS);
		if (now_ns - sent_ns == 5 * MS)
			sent_ns = now_ns;
	}
}

TEST(heads_with_the_first_samples_of_a_program_are_sent_at_once)
{
	uint64_t now_ns = begun(10000 * MS);

	add_record(64);
	ck_assert(!is_sent_at(now_ns += 10 * MS));
	/* A second target. */
	ck_assert_ptr_eq(readers_sink(readers, RING), sink);
	check_first_heads(10100 * MS);
	/* A target executes a new program. */
	sink->execs++;
	check_first_heads(20000 * MS);
	/* The ticks of a slow rate. */
	now_ns = 40000 * MS;
	sink->execs++;
	for (int i = 0; i < 3; i++) {
		add_record(64);
		ck_assert(is_sent_at(now_ns += 99 * MS));
	}
	add_record(64);
	ck_assert(!is_sent_at(now_ns += 99 * MS));
}

static bool has_messages(void)
{
	struct pollfd left = {.fd = fds[0], .events = POLLIN};

	return poll(&left, 1, 0) > 0;
}

TEST(a_reader_that_sends_without_end_does_not_block_others)
{
	const struct msg_stack_hint hint = {
		.h = MSG_HEADER(MSG_STACK_HINT),
	};
	unsigned int sent = 0, rounds = 0;

	/* Fills the socket. */
	while (ipc_send(fds[1], &hint, sizeof(hint), NULL, 0) == 0)
		sent++;
	ck_assert_uint_gt(sent, 128);
	for (; has_messages(); rounds++)
		OK(loop_run_once(loop, -1));
	ck_assert_uint_ge(rounds, sent / 64);
	ck_assert_uint_le(rounds, sent / 64 + 1);
}

/* The callback of a broken ring fails the test. */
TEST(a_lack_of_memory_is_not_the_readers_fault)
{
	static const int errors[] = {ENOMEM, ENOBUFS};
	const struct msg_stack_hint hint = {
		.h = MSG_HEADER(MSG_STACK_HINT),
	};

	for (size_t i = 0; i < array_size(errors); i++) {
		OK(ipc_send(fds[1], &hint, sizeof(hint), NULL, 0));
		recvmsg_error = errors[i];
		OK(loop_run_once(loop, -1));
		ck_assert_int_eq(recvmsg_error, 0);
		ck_assert(has_messages());
		OK(loop_run_once(loop, -1));
		ck_assert(!has_messages());
		ck_assert(!sink->reader_is_gone);
	}
}

/* Samples that are missed from then on are missed because there is no reader. */
TEST(without_a_reader_the_ring_is_detached)
{
	const uint8_t *shared = sink->ring.base;
	int ring_fd;

	ck_assert(!sink->reader_is_gone);
	close_fd(&fds[1]);
	OK(loop_run_once(loop, -1));
	ck_assert(sink->reader_is_gone);
	/* The shared memory is freed, and records can still be written. */
	ck_assert_ptr_ne(sink->ring.base, shared);
	add_record(64);
	OK(ipc_pair(fds));
	OK(readers_make(readers, RING, fds[0], &ring_fd));
	close_fd(&ring_fd);
	ck_assert_ptr_eq(readers_sink(readers, RING), sink);
	ck_assert(!sink->reader_is_gone);
}

/* Capture takes a list of any addresses, and of these sizes only. */
TESTS(a_list_of_watched_parts_has_limits, 3)
{
	const struct msg_watch good = {
		.h = MSG_HEADER(MSG_WATCH),
		.n = WATCH_PARTS,
		.parts = {[WATCH_PARTS - 1] = {.addr = UINT64_MAX, .size = WATCH_BYTES}},
	};
	struct msg_watch bad = good;

	for (size_t i = 0; i + 1 < WATCH_PARTS; i++)
		bad.parts[i].size = 1;
	OK(ipc_send(fds[1], &bad, sizeof(bad), NULL, 0));
	OK(loop_run_once(loop, -1));
	ck_assert(!sink->reader_is_gone);
	may_break = true;
	if (_i == 0)
		bad.n = WATCH_PARTS + 1;
	else
		bad.parts[WATCH_PARTS / 2].size = _i == 1 ? 0 : WATCH_BYTES + 1;
	OK(ipc_send(fds[1], &bad, sizeof(bad), NULL, 0));
	OK(loop_run_once(loop, -1));
	ck_assert(is_broken);
	ck_assert(sink->reader_is_gone);
}

/* Another library has been loaded, and may soon be gone. */
TEST(changes_of_watched_memory_are_announced_at_once_and_every_50_ms)
{
	uint64_t now_ns = begun(10000 * MS);

	/* Up to here the target is new. */
	while (sent_after(now_ns) < 500 * MS)
		now_ns += 100 * MS;
	now_ns += 500 * MS;
	for (int i = 0; i < 4; i++) {
		sink->watched++;
		ck_assert_uint_eq(sent_after(now_ns), i == 0 ? 10 * MS : 50 * MS);
		now_ns += i == 0 ? 10 * MS : 50 * MS;
	}
	/* Nothing has changed since. */
	ck_assert_uint_gt(sent_after(now_ns), 50 * MS);
}
