/* How often a writer is woken, and that what is read is given back. */
#include "daemon/unwind/credit.h"

#include <errno.h>
#include <fcntl.h>

#include "daemon/msg/msg.h"
#include "lib/base/ipc.h"
#include "lib/base/util.h"
#include "tests/unit/suite.h"

#define SIZE ((size_t)1 << 20)

static struct ring_writer writer;
static struct ring_reader reader;
static struct credit credit;

static void set_up(void)
{
	OK(ring_writer_init(&writer, SIZE));
	OK(ring_reader_init(&reader, writer.fd));
	credit = (struct credit){0};
}

static void tear_down(void)
{
	ring_reader_fini(&reader);
	ring_writer_fini(&writer);
}

/* As if it had read so much. */
static void go_on(size_t n)
{
	reader.tail += n;
	reader.read += n;
}

/* How much more has to be read until it is due. */
static uint64_t until_due(bool at_end)
{
	const uint64_t from = reader.tail;

	while (!credit_is_due(&credit, &reader, at_end))
		go_on(RING_ALIGN);
	return reader.tail - from;
}

FIXTURE(set_up, tear_down)

TEST(little_is_worth_no_message)
{
	for (int i = 0; i < 100; i++) {
		ck_assert_uint_eq(until_due(true), SIZE / 128);
		/* It is given. */
		ck_assert(!credit_is_due(&credit, &reader, true));
	}
}

/* The writer goes on meanwhile, and fills less than a lap. */
TEST(who_is_late_gives_some_before_the_end)
{
	ck_assert_uint_eq(until_due(false), SIZE / 8);
	ck_assert(!credit_is_due(&credit, &reader, true));
	go_on(SIZE / 8 - RING_ALIGN);
	ck_assert(!credit_is_due(&credit, &reader, false));
	ck_assert(credit_is_due(&credit, &reader, true));
	ck_assert_uint_eq(until_due(false), SIZE / 8);
}

/* That a lap has ended early wakes nobody. */
TEST(a_pad_is_nothing_that_was_read)
{
	reader.tail += SIZE - SIZE / 64;
	ck_assert(!credit_is_due(&credit, &reader, true));
	ck_assert_uint_eq(until_due(true), SIZE / 128);
}

/* What is not told is told later: else a full ring would stay full. */
TEST(a_full_link_is_told_later)
{
	struct ipc_message m;
	const struct msg_number *told;
	int link[2], r, sent = 0;

	OK(ipc_pair(link));
	OK(fcntl(link[0], F_SETFL, O_NONBLOCK));
	reader.tail = 1000 * RING_ALIGN;
	while ((r = credit_give(&credit, &reader, link[0])) == 0 && !credit.is_owed)
		sent++;
	ck_assert_int_eq(r, 0);
	reader.tail += RING_ALIGN;
	OK(credit_give(&credit, &reader, link[0]));
	ck_assert(credit.is_owed);
	while (sent-- > 0)
		ck_assert_int_eq(ipc_recv(link[1], &m), 1);
	OK(credit_give(&credit, &reader, link[0]));
	ck_assert(!credit.is_owed);
	ck_assert_int_eq(ipc_recv(link[1], &m), 1);
	told = (const void *)m.bytes;
	ck_assert_uint_eq(told->n, reader.tail);
	close_fd(&link[1]);
	ck_assert_int_eq(credit_give(&credit, &reader, link[0]), -EPIPE);
	close_fd(&link[0]);
}
