/* How often a writer is woken, and that what is read is given back. */
#include "daemon/credit.h"

#include "tests/unit/suite.h"

#define SIZE ((size_t)1 << 20)

static struct ring_writer writer;
static struct ring_reader reader;
static struct credit credit;

static void set_up(void)
{
	ck_assert_int_eq(ring_writer_init(&writer, SIZE), 0);
	ck_assert_int_eq(ring_reader_init(&reader, writer.fd), 0);
	credit = (struct credit){0};
}

static void tear_down(void)
{
	ring_reader_fini(&reader);
	ring_writer_fini(&writer);
}

/* How much more has to be read until it is due. */
static uint64_t until_due(bool at_end)
{
	const uint64_t from = reader.tail;

	while (!credit_is_due(&credit, &reader, at_end))
		reader.tail += RING_ALIGN;
	return reader.tail - from;
}

START_TEST(little_is_worth_no_message)
{
	for (int i = 0; i < 100; i++) {
		ck_assert_uint_eq(until_due(true), SIZE / 128);
		/* It is given. */
		ck_assert(!credit_is_due(&credit, &reader, true));
	}
}
END_TEST

/* The writer goes on meanwhile, and fills less than a lap. */
START_TEST(who_is_late_gives_some_before_the_end)
{
	ck_assert_uint_eq(until_due(false), SIZE / 8);
	ck_assert(!credit_is_due(&credit, &reader, true));
	reader.tail += SIZE / 8 - RING_ALIGN;
	ck_assert(!credit_is_due(&credit, &reader, false));
	ck_assert(credit_is_due(&credit, &reader, true));
	ck_assert_uint_eq(until_due(false), SIZE / 8);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("credit");
	TCase *tc = tcase_create("credit");

	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, little_is_worth_no_message);
	tcase_add_test(tc, who_is_late_gives_some_before_the_end);
	suite_add_tcase(s, tc);
	return s;
}
