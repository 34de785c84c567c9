#include "daemon/broker/files/deadly.h"

#include "tests/unit/suite.h"

static struct deadly d;

static void setup(void)
{
	deadly_clear(&d);
}

static struct file_shown file(uint64_t inode)
{
	return (struct file_shown){.identity = {.device = 1, .inode = inode}, .name = "name"};
}

static bool count(uint32_t uid, uint64_t inode)
{
	return deadly_count(&d, uid, (uint32_t)inode);
}

static bool is_left_out(uint32_t uid, uint64_t inode)
{
	const struct file_shown f = file(inode);

	return deadly_is_left_out(&d, uid, (uint32_t)inode, &f);
}

FIXTURE(setup, NULL)

TEST(three_deaths)
{
	ck_assert(!is_left_out(7, 1));
	ck_assert(!count(7, 1));
	ck_assert(!is_left_out(7, 1));
	ck_assert(!count(7, 1));
	ck_assert(!is_left_out(7, 1));
	ck_assert_ptr_null(deadly_next(&d, NULL));
	ck_assert(count(7, 1));
	ck_assert(is_left_out(7, 1));
	/* Said once. */
	ck_assert(!count(7, 1));
	ck_assert_uint_eq(deadly_left_out(&d), 1);
	ck_assert_str_eq(deadly_next(&d, NULL)->file.name, "name");
	ck_assert_ptr_null(deadly_next(&d, deadly_next(&d, NULL)));
	deadly_clear(&d);
	ck_assert(!is_left_out(7, 1));
	ck_assert_uint_eq(deadly_left_out(NULL), 0);
}

/* What a user's process says is about his own targets. */
TEST(by_user)
{
	for (int i = 0; i < DEADLY_DEATHS; i++)
		(void)count(7, 1);
	ck_assert(is_left_out(7, 1));
	ck_assert(!is_left_out(8, 1));
	ck_assert(!count(8, 1));
}

/* It died at a number that never went with a file. */
TEST(a_lie)
{
	for (int i = 0; i < DEADLY_DEATHS; i++)
		(void)count(7, 1);
	ck_assert_uint_eq(deadly_left_out(&d), 0);
}

/* Who has many loses his own oldest, and nobody else's. */
TEST(too_many_of_a_user)
{
	for (int i = 0; i < DEADLY_DEATHS; i++) {
		(void)count(8, 1);
		(void)count(7, 1);
	}
	for (uint64_t inode = 2; inode <= DEADLY_OF_USER; inode++)
		(void)count(7, inode);
	ck_assert(is_left_out(7, 1));
	(void)count(7, DEADLY_OF_USER + 1);
	ck_assert(!is_left_out(7, 1));
	ck_assert(is_left_out(8, 1));
}

TEST(too_many_of_all)
{
	for (int i = 0; i < DEADLY_DEATHS; i++)
		(void)count(1000, 1);
	for (uint32_t uid = 0; uid < DEADLY_MAX - 1; uid++)
		(void)count(uid, 1);
	ck_assert(is_left_out(1000, 1));
	(void)count(2000, 1);
	ck_assert(!is_left_out(1000, 1));
	/* The next oldest has gone, and has all its deaths before it again. */
	(void)count(1000, 1);
	for (int i = 1; i < DEADLY_DEATHS; i++)
		ck_assert_int_eq(count(0, 1), false);
}
