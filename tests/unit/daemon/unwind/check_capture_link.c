/* Tests of the link to capture: when credits are due, a full socket, and the reading of records. */
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

/* Lets the reader have read n more bytes. */
static void read_bytes(size_t n)
{
	l.ring.tail += n;
	l.ring.read += n;
}

/* Returns how many more bytes have to be read until a credit is due. */
static uint64_t until_due(bool at_end)
{
	const uint64_t from = l.ring.tail;

	while (!capture_link_credit_is_due(&l, at_end))
		read_bytes(RING_ALIGN);
	return l.ring.tail - from;
}

FIXTURE(set_up, tear_down)

TEST(with_nothing_left_to_read_a_credit_is_due_for_each_128th)
{
	for (int i = 0; i < 100; i++) {
		ck_assert_uint_eq(until_due(true), SIZE / 128);
		ck_assert(!capture_link_credit_is_due(&l, true));
	}
}

TEST(while_records_remain_a_credit_is_due_for_each_eighth)
{
	ck_assert_uint_eq(until_due(false), SIZE / 8);
	ck_assert(!capture_link_credit_is_due(&l, true));
	read_bytes(SIZE / 8 - RING_ALIGN);
	ck_assert(!capture_link_credit_is_due(&l, false));
	ck_assert(capture_link_credit_is_due(&l, true));
	ck_assert_uint_eq(until_due(false), SIZE / 8);
}

TEST(padding_at_the_end_of_a_lap_causes_no_credit)
{
	l.ring.tail += SIZE - SIZE / 64;
	ck_assert(!capture_link_credit_is_due(&l, true));
	ck_assert_uint_eq(until_due(true), SIZE / 128);
}

/* Without the later credit a full ring would stay full. */
TEST(a_credit_that_a_full_socket_refuses_is_sent_later)
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

TEST(records_that_capture_wrote_before_its_end_are_read)
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
	/* capture is killed before it announces this one. */
	write_record();
	ck_assert_int_eq(capture_link_read(&l, false, count_record), 1);
	ck_assert_uint_eq(n_records, 3);
	close_fd(&link[1]);
	ck_assert_int_eq(capture_link_read(&l, true, count_record), 0);
	ck_assert_uint_eq(n_records, 4);
	capture_link_close(&l);
}

TEST(records_that_capture_has_not_announced_are_read_if_all_are)
{
	uint64_t announced;
	int link[2];

	n_records = 0;
	OK(ipc_pair(link));
	OK(fcntl(link[0], F_SETFL, O_NONBLOCK));
	l.fd = link[0];
	write_record();
	announced = writer.head;
	write_record();
	ck_assert_int_eq(capture_link_read(&l, false, count_record), 1);
	ck_assert_uint_eq(n_records, 0);
	ck_assert_int_eq(capture_link_read(&l, true, count_record), 1);
	ck_assert_uint_eq(n_records, 2);
	/* This message crossed with the reading. */
	OK(msg_send_number(link[1], MSG_RING_HEAD, announced));
	write_record();
	ck_assert_int_eq(capture_link_read(&l, false, count_record), 1);
	ck_assert_uint_eq(n_records, 2);
	OK(msg_send_number(link[1], MSG_RING_HEAD, writer.head));
	ck_assert_int_eq(capture_link_read(&l, false, count_record), 1);
	ck_assert_uint_eq(n_records, 3);
	capture_link_close(&l);
	close_fd(&link[1]);
}

TEST(a_head_beyond_the_ring_is_refused)
{
	int link[2];

	OK(ipc_pair(link));
	l.fd = link[0];
	OK(msg_send_number(link[1], MSG_RING_HEAD, 3 * SIZE));
	ck_assert_int_eq(capture_link_read(&l, false, count_record), -EPROTO);
	capture_link_close(&l);
	close_fd(&link[1]);
}
