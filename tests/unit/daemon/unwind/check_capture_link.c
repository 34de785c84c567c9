/* Credits: when they are due, and that a full socket delays them. Records. */
#include "daemon/unwind/capture_link.h"

#include <errno.h>
#include <fcntl.h>

#include "daemon/msg/msg_io.h"
#include "lib/base/ipc.h"
#include "lib/base/util.h"
#include "tests/unit/suite.h"

#define SIZE ((size_t)1 << 20)

static struct ring_writer writer;
static struct capture_link l;

static void set_up(void)
{
	OK(ring_writer_init(&writer, SIZE));
	l = (struct capture_link){.fd = -1};
	OK(ring_reader_init(&l.ring, writer.fd));
}

static void tear_down(void)
{
	ring_reader_fini(&l.ring);
	ring_writer_fini(&writer);
}

/* As if the reader had read n bytes. */
static void go_on(size_t n)
{
	l.ring.tail += n;
	l.ring.read += n;
}

/* Returns how many more bytes have to be read until a credit is due. */
static uint64_t until_due(bool at_end)
{
	const uint64_t from = l.ring.tail;

	while (!capture_link_credit_is_due(&l, at_end))
		go_on(RING_ALIGN);
	return l.ring.tail - from;
}

FIXTURE(set_up, tear_down)

TEST(a_small_part_is_not_worth_a_credit)
{
	for (int i = 0; i < 100; i++) {
		ck_assert_uint_eq(until_due(true), SIZE / 128);
		ck_assert(!capture_link_credit_is_due(&l, true));
	}
}

/* The writer goes on meanwhile, and fills less than a lap. */
TEST(a_late_reader_gives_credit_before_the_end)
{
	ck_assert_uint_eq(until_due(false), SIZE / 8);
	ck_assert(!capture_link_credit_is_due(&l, true));
	go_on(SIZE / 8 - RING_ALIGN);
	ck_assert(!capture_link_credit_is_due(&l, false));
	ck_assert(capture_link_credit_is_due(&l, true));
	ck_assert_uint_eq(until_due(false), SIZE / 8);
}

/* A lap that ends early causes no credit. */
TEST(a_pad_counts_as_nothing_read)
{
	l.ring.tail += SIZE - SIZE / 64;
	ck_assert(!capture_link_credit_is_due(&l, true));
	ck_assert_uint_eq(until_due(true), SIZE / 128);
}

/* A credit that could not be sent is owed: else a full ring would stay full. */
TEST(a_full_socket_delays_the_credit)
{
	const struct msg_number *credit;
	struct ipc_message m;
	int link[2], sent = 0;

	OK(ipc_pair(link));
	OK(fcntl(link[0], F_SETFL, O_NONBLOCK));
	l.fd = link[0];
	l.ring.tail = 1000 * RING_ALIGN;
	for (;; sent++) {
		OK(capture_link_give_credit(&l));
		if (l.owes_credit)
			break;
	}
	l.ring.tail += RING_ALIGN;
	OK(capture_link_give_credit(&l));
	ck_assert(l.owes_credit);
	while (sent-- > 0)
		ck_assert_int_eq(ipc_recv(link[1], &m), 1);
	OK(capture_link_give_credit(&l));
	ck_assert(!l.owes_credit);
	ck_assert_int_eq(ipc_recv(link[1], &m), 1);
	credit = (const void *)m.bytes;
	ck_assert_uint_eq(credit->n, l.ring.tail);
	/* capture has ended: the credit is dropped. */
	close_fd(&link[1]);
	OK(capture_link_give_credit(&l));
	ck_assert(!l.owes_credit);
	capture_link_close(&l);
	ck_assert_int_eq(l.fd, -1);
}

static size_t n_records;

static int count_record(const struct record *record, size_t size)
{
	ck_assert_uint_ge(size, sizeof(*record));
	ck_assert_uint_eq(record->target, 7);
	n_records++;
	return 0;
}

static void write_record(void)
{
	struct record *record;
	void *space;

	OK(ring_reserve(&writer, sizeof(*record), &space));
	record = space;
	record->target = 7;
	ring_commit(&writer, RECORD_RESET, sizeof(*record));
}

/* Records that capture wrote before its end are read. */
TEST(records_are_read_until_capture_ends)
{
	int link[2];

	n_records = 0;
	OK(ipc_pair(link));
	OK(fcntl(link[0], F_SETFL, O_NONBLOCK));
	l.fd = link[0];
	ck_assert_int_eq(capture_link_read(&l, true, count_record), 1);
	ck_assert_uint_eq(n_records, 0);
	write_record();
	write_record();
	OK(msg_send_number(link[1], MSG_RING_HEAD, writer.head));
	ck_assert_int_eq(capture_link_read(&l, false, count_record), 1);
	ck_assert_uint_eq(n_records, 2);
	write_record();
	OK(msg_send_number(link[1], MSG_RING_HEAD, writer.head));
	close_fd(&link[1]);
	ck_assert_int_eq(capture_link_read(&l, true, count_record), 0);
	ck_assert_uint_eq(n_records, 3);
	capture_link_close(&l);
}

/* A head beyond the ring is a fault of capture. */
TEST(a_wrong_head)
{
	int link[2];

	OK(ipc_pair(link));
	l.fd = link[0];
	OK(msg_send_number(link[1], MSG_RING_HEAD, 3 * SIZE));
	ck_assert_int_eq(capture_link_read(&l, false, count_record), -EPROTO);
	capture_link_close(&l);
	close_fd(&link[1]);
}
