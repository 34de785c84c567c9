/* A socket that the test reads, and chunks that it makes. */
#include "daemon/broker/control/reader.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/broker/delivery/delivery.h"
#include "lib/base/ipc.h"
#include "lib/base/sealed.h"
#include "tests/unit/suite.h"

#define T0    (1000 * NS_PER_SEC)
#define PIECE (PROTOCOL_RECORDED_MAX - (uint32_t)sizeof(struct protocol_recorded))
#define MB    (1u << 20)
#define ROOM  ((uint64_t)PROTOCOL_CHUNK_MAX)

static struct loop *loop;
static struct reader reader;
static int peer;

static void set_up(void)
{
	OK(loop_new(&loop));
	OK(reader_open(&reader, loop, &peer));
	OK(fcntl(peer, F_SETFL, O_NONBLOCK));
}

static void tear_down(void)
{
	close_fd(&peer);
	reader_close(&reader);
	loop_free(loop);
}

static void turn(void)
{
	OK(loop_run_once(loop, 0));
}

static int chunk(size_t size, int byte)
{
	char *bytes = malloc(size);
	int fd;

	ck_assert_ptr_nonnull(bytes);
	memset(bytes, byte, size);
	OK(sealed_copy("chunk", bytes, size, &fd));
	free(bytes);
	return fd;
}

static void add(uint32_t size, int byte)
{
	int fd = chunk(size, byte);

	reader_add(&reader, fd, size, ROOM, T0);
	close_fd(&fd);
}

/* Reads a message, whose bytes are all the same. Returns their number. */
static uint32_t receive(struct protocol_recorded *ret, int byte)
{
	static struct ipc_message message;
	size_t n;

	ck_assert_int_eq(ipc_recv(peer, &message), 1);
	ck_assert_uint_eq(message.n_fds, 0);
	ck_assert_uint_ge(message.size, sizeof(*ret));
	memcpy(ret, message.bytes, sizeof(*ret));
	n = message.size - sizeof(*ret);
	for (size_t i = 0; i < n; i++)
		ck_assert_int_eq(message.bytes[sizeof(*ret) + i], byte);
	return (uint32_t)n;
}

static void expect_nothing(void)
{
	static struct ipc_message message;

	ck_assert_int_eq(ipc_recv(peer, &message), -EAGAIN);
}

/* Reads a whole chunk. */
static void expect_chunk(uint32_t size, int byte)
{
	struct protocol_recorded m;
	uint32_t at = 0;

	while (at < size) {
		uint32_t n;

		turn();
		n = receive(&m, byte);
		ck_assert_uint_eq(m.end, PROTOCOL_RECORD_GOES_ON);
		ck_assert_uint_eq(m.size, size);
		ck_assert_uint_eq(m.at, at);
		ck_assert_uint_eq(n, min_size(size - at, PIECE));
		at += n;
	}
}

FIXTURE(set_up, tear_down)

TEST(a_chunk_comes_in_pieces)
{
	add(3 * PIECE + 1, 'a');
	expect_chunk(3 * PIECE + 1, 'a');
	turn();
	expect_nothing();
	ck_assert_uint_eq(reader.lost, 0);
	ck_assert_uint_eq(reader_waiting(&reader), 0);
}

TEST(chunks_come_in_order_and_the_end_behind_them)
{
	struct protocol_recorded m;

	add(PIECE, 'a');
	add(10 * PIECE, 'b');
	ck_assert_int_eq(reader_end(&reader, PROTOCOL_RECORD_DONE, ""), -EAGAIN);
	expect_chunk(PIECE, 'a');
	expect_chunk(10 * PIECE, 'b');
	OK(reader_end(&reader, PROTOCOL_RECORD_LEFT_OUT, "xxx"));
	ck_assert_uint_eq(receive(&m, 'x'), 3);
	ck_assert_uint_eq(m.end, PROTOCOL_RECORD_LEFT_OUT);
	expect_nothing();
}

TEST(a_long_text_is_cut_off)
{
	char text[PROTOCOL_TEXT_SIZE + 1];
	struct protocol_recorded m;

	memset(text, 'x', sizeof(text));
	text[PROTOCOL_TEXT_SIZE] = '\0';
	OK(reader_end(&reader, PROTOCOL_RECORD_DONE, text));
	ck_assert_uint_eq(receive(&m, 'x'), PROTOCOL_TEXT_SIZE - 1);
}

TEST(a_peer_that_does_not_read_loses_its_chunks)
{
	struct protocol_recorded m;

	add(MB, 'a');
	add(MB, 'b');
	turn();
	reader_check(&reader, T0 + 1);
	for (int i = 0; i < 10; i++)
		turn();
	reader_check(&reader, T0 + READER_IDLE_NS);
	ck_assert_uint_eq(reader.n_chunks, 2);
	reader_check(&reader, T0 + 1 + READER_IDLE_NS);
	ck_assert_uint_eq(reader.n_chunks, 0);
	ck_assert_uint_eq(reader.lost, 2);
	/* The pieces in the socket, and then another chunk: a part of the first is missing. */
	for (uint32_t at = 0; reader_waiting(&reader) > 0; at += PIECE) {
		ck_assert_uint_eq(receive(&m, 'a'), PIECE);
		ck_assert_uint_eq(m.at, at);
	}
	add(2, 'c');
	turn();
	ck_assert_uint_eq(receive(&m, 'c'), 2);
	ck_assert_uint_eq(m.at, 0);
	ck_assert_uint_eq(m.lost, 2);
}

/* The peer needs nearly 5 s for each piece. */
TEST(a_slow_peer_loses_nothing)
{
	struct protocol_recorded m;
	uint64_t now_ns = T0;
	uint32_t at = 0;

	add(20 * PIECE, 'a');
	while (at < 20 * PIECE) {
		turn();
		reader_check(&reader, now_ns);
		now_ns += READER_IDLE_NS - 1;
		reader_check(&reader, now_ns);
		at += receive(&m, 'a');
	}
	ck_assert_uint_eq(reader.lost, 0);
}

TEST(the_number_of_chunks_is_limited)
{
	struct protocol_recorded m;

	for (int i = 0; i < READER_CHUNKS_MAX + 2; i++)
		add(1, 'a');
	ck_assert_uint_eq(reader.n_chunks, READER_CHUNKS_MAX);
	ck_assert_uint_eq(reader.lost, 2);
	for (int i = 0; i < READER_CHUNKS_MAX; i++) {
		turn();
		ck_assert_uint_eq(receive(&m, 'a'), 1);
	}
	turn();
	expect_nothing();
}

TEST(a_chunk_without_room_is_lost)
{
	int fd = chunk(2 * MB, 'a');

	reader_add(&reader, fd, 2 * MB, 2 * MB - 1, T0);
	ck_assert_uint_eq(reader.lost, 1);
	reader_add(&reader, fd, 2 * MB, 2 * MB, T0);
	ck_assert_uint_eq(reader.lost, 1);
	ck_assert_uint_eq(reader_waiting(&reader), 2 * MB);
	close_fd(&fd);
}

TEST(pages_behind_the_end_count)
{
	int fd = memfd_create("chunk", MFD_CLOEXEC);

	ck_assert_int_eq(write(fd, "a", 1), 1);
	OK(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 4 * MB));
	reader_add(&reader, fd, 1, 4 * MB - 1, T0);
	ck_assert_uint_eq(reader.lost, 1);
	reader_add(&reader, fd, 1, 4 * MB, T0);
	ck_assert_uint_eq(reader_waiting(&reader), 4 * MB);
	close_fd(&fd);
}

/* Pages in a hole could be made later. */
TEST(a_chunk_with_a_hole_is_lost)
{
	int fd = memfd_create("chunk", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	ck_assert_int_eq(write(fd, "a", 1), 1);
	OK(ftruncate(fd, MB));
	OK(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL));
	reader_add(&reader, fd, MB, ROOM, T0);
	ck_assert_uint_eq(reader.lost, 1);
	OK(fallocate(fd, 0, 0, MB));
	close_fd(&fd);
}

/* What lies in the socket counts until the peer has read it, or has closed the socket. */
TEST(unread_messages_wait)
{
	struct protocol_recorded m;

	add(PIECE, 'a');
	turn();
	ck_assert_uint_eq(reader.n_chunks, 0);
	reader_stop(&reader);
	ck_assert_uint_ge(reader_waiting(&reader), PIECE);
	ck_assert_uint_eq(receive(&m, 'a'), PIECE);
	ck_assert_uint_eq(reader_waiting(&reader), 0);
}

TEST(a_closed_socket_has_no_messages)
{
	add(PIECE, 'a');
	turn();
	close_fd(&peer);
	ck_assert_uint_eq(reader_waiting(&reader), 0);
	add(PIECE, 'a');
	turn();
	ck_assert(reader.is_stopped);
	ck_assert_uint_eq(reader.lost, 1);
	ck_assert_int_eq(reader_end(&reader, PROTOCOL_RECORD_DONE, ""), -EPIPE);
	add(PIECE, 'a');
	ck_assert_uint_eq(reader.lost, 2);
	turn();
}

/* A peer reads all, and the chunks come without end. */
TEST(copying_has_a_budget)
{
	const uint64_t budget = CHUNK_BUDGET_LAG_NS / NS_PER_SEC * CHUNK_BUDGET_BYTES;
	static struct ipc_message message;
	int fd = chunk(MB, 'a');
	uint64_t copied = 0;

	for (uint64_t i = 0; i < budget / MB + 10; i++) {
		reader_add(&reader, fd, MB, ROOM, T0);
		while (reader.n_chunks > 0) {
			turn();
			while (ipc_recv(peer, &message) == 1)
				copied += message.size - sizeof(struct protocol_recorded);
		}
	}
	ck_assert_uint_eq(copied, budget);
	ck_assert_uint_eq(reader.lost, 10);
	reader_add(&reader, fd, MB, ROOM, T0 + NS_PER_SEC);
	ck_assert_uint_eq(reader.lost, 10);
	close_fd(&fd);
}

/* The peer cannot send, and options of its end do not change how much the socket holds. */
TEST(the_peer_cannot_harm_the_socket)
{
	const int most = 1 << 30;
	struct protocol_recorded m;
	int n = 0;

	OK(setsockopt(peer, SOL_SOCKET, SO_RCVBUF, &most, sizeof(most)));
	OK(setsockopt(peer, SOL_SOCKET, SO_SNDBUF, &most, sizeof(most)));
	ck_assert_int_eq(ipc_send(peer, "x", 1, NULL, 0), -EPIPE);
	add(4 * MB, 'a');
	for (int i = 0; i < 100; i++)
		turn();
	while (reader_waiting(&reader) > 4 * MB) {
		ck_assert_uint_eq(receive(&m, 'a'), PIECE);
		n++;
	}
	ck_assert_int_le(n, 5);
}
