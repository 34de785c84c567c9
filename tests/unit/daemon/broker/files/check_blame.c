/* The numbers that go with files which are handed to unwind processes. */
#include "daemon/broker/broker.h"
#include "daemon/broker/files/blame.h"
#include "tests/unit/suite.h"

static struct broker b;
static struct unwind unwind;

static uint32_t hand(struct file_identity identity, uint32_t kind)
{
	const struct file_shown file = {.identity = identity};
	const struct msg_file_request request = {.kind = kind};
	uint32_t number;

	OK(blame_hand(&b, &unwind, &request, &file, &number));
	return number;
}

/* One that is written to is another. */
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

/* What one process learns is of no use under another broker. */
TEST(each_broker_has_its_own)
{
	const struct file_identity file = {.device = 1, .inode = 1};
	const uint32_t before = hand(file, FILE_KIND_IMAGE);

	b.files_key[0]++;
	ck_assert_uint_ne(hand(file, FILE_KIND_IMAGE), before);
}
