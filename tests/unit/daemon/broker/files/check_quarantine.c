#include "daemon/broker/files/quarantine.h"

#include "daemon/msg/msg_unwind.h"
#include "tests/unit/suite.h"

static struct quarantine q;

static void setup(void)
{
	quarantine_clear(&q);
}

static struct file_label file(uint64_t inode)
{
	return (struct file_label){.identity = {.device = 1, .inode = inode}, .name = "name"};
}

static bool count(uint32_t uid, uint64_t inode)
{
	return quarantine_count_death(&q, uid, (uint32_t)inode);
}

static bool has(uint32_t uid, uint64_t inode)
{
	const struct file_label f = file(inode);

	return quarantine_has(&q, uid, (uint32_t)inode, &f);
}

FIXTURE(setup, NULL)

TEST(three_deaths)
{
	ck_assert(!has(7, 1));
	ck_assert(!count(7, 1));
	ck_assert(!has(7, 1));
	ck_assert(!count(7, 1));
	ck_assert(!has(7, 1));
	ck_assert_ptr_null(quarantine_next(&q, NULL));
	ck_assert(count(7, 1));
	ck_assert(has(7, 1));
	/* Only the death that quarantines the file returns true. */
	ck_assert(!count(7, 1));
	ck_assert_uint_eq(quarantine_count_files(&q), 1);
	ck_assert_str_eq(quarantine_next(&q, NULL)->file.name, "name");
	ck_assert_ptr_null(quarantine_next(&q, quarantine_next(&q, NULL)));
	quarantine_clear(&q);
	ck_assert(!has(7, 1));
	ck_assert_uint_eq(quarantine_count_files(&q), 0);
}

/* The deaths of a user's processes count for that user only. */
TEST(by_user)
{
	for (int i = 0; i < QUARANTINE_DEATHS; i++)
		(void)count(7, 1);
	ck_assert(has(7, 1));
	ck_assert(!has(8, 1));
	ck_assert(!count(8, 1));
}

/* An unwind process dies with a number in its page that was never sent with a file. */
TEST(a_lie)
{
	for (int i = 0; i < QUARANTINE_DEATHS; i++)
		(void)count(7, 1);
	ck_assert_uint_eq(quarantine_count_files(&q), 0);
}

/* A user with too many entries loses its own oldest one, and no other user's. */
TEST(too_many_of_a_user)
{
	for (int i = 0; i < QUARANTINE_DEATHS; i++) {
		(void)count(8, 1);
		(void)count(7, 1);
	}
	for (uint64_t inode = 2; inode <= QUARANTINE_OF_USER; inode++)
		(void)count(7, inode);
	ck_assert(has(7, 1));
	(void)count(7, QUARANTINE_OF_USER + 1);
	ck_assert(!has(7, 1));
	ck_assert(has(8, 1));
}

TEST(too_many_of_all)
{
	for (int i = 0; i < QUARANTINE_DEATHS; i++)
		(void)count(1000, 1);
	for (uint32_t uid = 0; uid < QUARANTINE_MAX - 1; uid++)
		(void)count(uid, 1);
	ck_assert(has(1000, 1));
	(void)count(2000, 1);
	ck_assert(!has(1000, 1));
	/* The next oldest entry was replaced, and starts again with no deaths. */
	(void)count(1000, 1);
	for (int i = 1; i < QUARANTINE_DEATHS; i++)
		ck_assert_int_eq(count(0, 1), false);
}

/* Returns the number that is sent with a file. */
static uint32_t hand(struct file_identity identity, uint32_t kind)
{
	const struct file_label file = {.identity = identity};
	const struct msg_file_request request = {.kind = kind};
	uint32_t number;

	OK(quarantine_check_file(&q, 7, &request, &file, &number));
	return number;
}

/* A file that is modified has another identity. */
TEST(each_file_has_its_own)
{
	static const struct file_identity files[] = {
		{.device = 1, .inode = 1},
		{.device = 2, .inode = 1},
		{.device = 1, .inode = 2},
		{.device = 1, .inode = 1, .size = 1},
		{.device = 1, .inode = 1, .ctime_ns = 1},
	};

	for (size_t i = 0; i < array_size(files); i++) {
		ck_assert_uint_ne(hand(files[i], FILE_KIND_IMAGE), 0);
		ck_assert_uint_eq(hand(files[i], FILE_KIND_PERF_MAP), 0);
		for (size_t k = 0; k < array_size(files); k++)
			ck_assert((hand(files[i], FILE_KIND_IMAGE) ==
				   hand(files[k], FILE_KIND_DEBUG)) == (i == k));
	}
}

/* The numbers of files are different in each broker, since each draws its own key. */
TEST(each_broker_has_its_own)
{
	const struct file_identity file = {.device = 1, .inode = 1};
	const uint32_t before = hand(file, FILE_KIND_IMAGE);

	q.key[0]++;
	ck_assert_uint_ne(hand(file, FILE_KIND_IMAGE), before);
}
