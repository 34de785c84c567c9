/* Texts of /proc/PID/status, and that of this process. */
#include "daemon/process/ids.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/base/procfs.h"
#include "lib/base/small_file.h"
#include "tests/unit/suite.h"

#define LINES "Uid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t4294967294\n"

/* A name may contain what looks like a line, but no newline. */
TEST(the_ids_have_the_order_of_the_line)
{
	struct ids ids;

	ck_assert(ids_parse("Name:\tUid:\t9\t9\t9\t9\n" LINES, &ids));
	ck_assert_uint_eq(ids.uid[IDS_REAL], 1);
	ck_assert_uint_eq(ids.uid[IDS_EFFECTIVE], 2);
	ck_assert_uint_eq(ids.uid[IDS_SAVED], 3);
	ck_assert_uint_eq(ids.uid[IDS_FILE_SYSTEM], 4);
	ck_assert_uint_eq(ids.gid[IDS_REAL], 5);
	ck_assert_uint_eq(ids.gid[IDS_FILE_SYSTEM], UINT32_MAX - 1);
}

TEST(a_text_without_all_ids_is_refused)
{
	static const char *const texts[] = {
		"",
		"Name:\tx\nUid:\t1\t2\t3\t4\n",
		"Name:\tx\nGid:\t1\t2\t3\t4\n",
		"Name:\tx\nUid:\t1\t2\t3\nGid:\t5\t6\t7\t8\n",
		"Name:\tx\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\n",
	};
	struct ids ids = {.uid = {7}};

	for (size_t i = 0; i < array_size(texts); i++)
		ck_assert(!ids_parse(texts[i], &ids));
	ck_assert_uint_eq(ids.uid[IDS_REAL], 7);
}

TEST(the_first_groups_are_kept_and_the_hash_is_of_all)
{
	uint32_t groups[IDS_GROUPS_MAX], n;
	char text[1024];
	uint64_t hash, other;
	int at = snprintf(text, sizeof(text), "Name:\tx\nGroups:\t");

	for (int i = 0; i <= IDS_GROUPS_MAX; i++)
		at += snprintf(text + at, sizeof(text) - (size_t)at, "%d ", 1000 + i);
	/* The text ends within the line. */
	ck_assert(!ids_parse_groups(text, groups, &n, &hash));
	(void)snprintf(text + at, sizeof(text) - (size_t)at, "\n");
	ck_assert(ids_parse_groups(text, groups, &n, &hash));
	ck_assert_uint_eq(n, IDS_GROUPS_MAX);
	ck_assert_uint_eq(groups[0], 1000);
	ck_assert_uint_eq(groups[IDS_GROUPS_MAX - 1], 1000 + IDS_GROUPS_MAX - 1);
	/* The last group is another one. */
	text[at - 2]++;
	ck_assert(ids_parse_groups(text, groups, &n, &other));
	ck_assert_uint_eq(n, IDS_GROUPS_MAX);
	ck_assert_uint_ne(other, hash);
}

TEST(a_process_may_have_no_groups)
{
	uint32_t groups[IDS_GROUPS_MAX], n = 7;
	uint64_t hash;

	ck_assert(ids_parse_groups("Name:\tx\nGroups:\t \n", groups, &n, &hash));
	ck_assert_uint_eq(n, 0);
	ck_assert(!ids_parse_groups("Name:\tx\n", groups, &n, &hash));
}

TEST(the_ids_are_those_of_the_kernel)
{
	char text[PROCFS_STATUS_MAX];
	struct ids ids;
	uid_t uid[3];
	gid_t gid[3];

	OK(getresuid(&uid[0], &uid[1], &uid[2]));
	OK(getresgid(&gid[0], &gid[1], &gid[2]));
	OK(small_file_read(AT_FDCWD, "/proc/self/status", text, sizeof(text)));
	ck_assert(ids_parse(text, &ids));
	for (int k = IDS_REAL; k <= IDS_SAVED; k++) {
		ck_assert_uint_eq(ids.uid[k], uid[k]);
		ck_assert_uint_eq(ids.gid[k], gid[k]);
	}
}
