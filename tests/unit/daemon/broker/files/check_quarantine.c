/*
 * After how many deaths of unwind processes at a file the file is quarantined, for which user, and
 * for how long. count() and has() use the inode of a file as its number.
 */
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
	return quarantine_count_death(&q, &(struct owner_key){.uid = uid}, (uint32_t)inode);
}

static bool has(uint32_t uid, uint64_t inode)
{
	const struct file_label f = file(inode);

	return quarantine_has(&q, &(struct owner_key){.uid = uid}, (uint32_t)inode, &f);
}

FIXTURE(setup, NULL)

TEST(a_file_is_quarantined_at_the_third_death)
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

TEST(deaths_count_for_their_user_only)
{
	for (int i = 0; i < QUARANTINE_DEATHS; i++)
		(void)count(7, 1);
	ck_assert(has(7, 1));
	ck_assert(!has(8, 1));
	ck_assert(!count(8, 1));
}

/* A malicious unwind process writes any number into its page before it dies. */
TEST(a_number_that_no_file_has_quarantines_no_file)
{
	for (int i = 0; i < QUARANTINE_DEATHS; i++)
		(void)count(7, 1);
	ck_assert_uint_eq(quarantine_count_files(&q), 0);
}

TEST(a_user_with_too_many_entries_loses_the_oldest)
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

TEST(with_too_many_entries_the_oldest_is_replaced)
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

	OK(quarantine_check_file(&q, &(struct owner_key){.uid = 7}, &request, &file, &number));
	return number;
}

/* Also a modified file, since it has another identity. A perf map has no number. */
TEST(each_file_has_a_number_of_its_own)
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

/* Each broker draws its own key. */
TEST(file_numbers_differ_between_brokers)
{
	const struct file_identity file = {.device = 1, .inode = 1};
	const uint32_t before = hand(file, FILE_KIND_IMAGE);

	q.key[0]++;
	ck_assert_uint_ne(hand(file, FILE_KIND_IMAGE), before);
}
