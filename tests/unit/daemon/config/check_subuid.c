/*
 * Owners of uids, by a file that the test writes. The accounts root and nobody (65534) are those of
 * /etc/passwd.
 */
#include "daemon/config/subuid.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/suite.h"

static struct subuid s;
static char directory[] = "/tmp/check_subuid.XXXXXX";
static char path[64], login_defs[64];

/* A new file each time, as vipw(8) and usermod(8) make one. */
static void write_file(const char *to, const char *text)
{
	char other[80];
	FILE *file;

	(void)snprintf(other, sizeof(other), "%s.new", to);
	file = fopen(other, "we");
	ck_assert_ptr_nonnull(file);
	ck_assert_int_ge(fputs(text, file), 0);
	ck_assert_int_eq(fclose(file), 0);
	OK(rename(other, to));
}

static void set_up(void)
{
	ck_assert_ptr_nonnull(mkdtemp(directory));
	(void)snprintf(path, sizeof(path), "%s/subuid", directory);
	(void)snprintf(login_defs, sizeof(login_defs), "%s/login.defs", directory);
	subuid_init(&s, path, login_defs);
}

static void tear_down(void)
{
	subuid_fini(&s);
	(void)unlink(path);
	(void)unlink(login_defs);
	OK(rmdir(directory));
}

FIXTURE(set_up, tear_down)

TEST(without_a_file_each_uid_counts_as_itself)
{
	ck_assert_uint_eq(subuid_owner(&s, 0), 0);
	ck_assert_uint_eq(subuid_owner(&s, 100000), 100000);
	ck_assert_uint_eq(subuid_owner(&s, UINT32_MAX), UINT32_MAX);
}

TEST(the_uids_of_a_range_count_as_its_owner)
{
	write_file(path, "nobody:100000:65536\n1007:165536:2\nnobody:400000:1\n");
	ck_assert_uint_eq(subuid_owner(&s, 99999), 99999);
	ck_assert_uint_eq(subuid_owner(&s, 100000), 65534);
	ck_assert_uint_eq(subuid_owner(&s, 165535), 65534);
	ck_assert_uint_eq(subuid_owner(&s, 165536), 1007);
	ck_assert_uint_eq(subuid_owner(&s, 165537), 1007);
	ck_assert_uint_eq(subuid_owner(&s, 165538), 165538);
	ck_assert_uint_eq(subuid_owner(&s, 400000), 65534);
	ck_assert_uint_eq(subuid_owner(&s, 65534), 65534);
}

TEST(the_uids_of_a_system_account_count_as_themselves)
{
	write_file(path, "root:100000:10\n999:200000:10\n1500:300000:10\ncontainers:400000:10\n");
	ck_assert_uint_eq(subuid_owner(&s, 100003), 100003);
	ck_assert_uint_eq(subuid_owner(&s, 200003), 200003);
	ck_assert_uint_eq(subuid_owner(&s, 300003), 1500);
	ck_assert_uint_eq(subuid_owner(&s, 400003), 400003);
	write_file(login_defs, "# UID_MIN 1\nSYS_UID_MIN\t100\nUID_MIN\t\t\t 2000\n");
	write_file(path, "1500:300000:10\n");
	ck_assert_uint_eq(subuid_owner(&s, 300003), 300003);
}

/* As of a user whom only the name service knows: all ranges of the name are one user. */
TEST(the_uids_of_an_unknown_name_count_as_one)
{
	write_file(path, "no-such-account:100000:10\nno-such-account:300000:10\nother:500000:10\n");
	ck_assert_uint_eq(subuid_owner(&s, 100004), 100000);
	ck_assert_uint_eq(subuid_owner(&s, 300004), 100000);
	ck_assert_uint_eq(subuid_owner(&s, 500004), 500000);
}

TEST(a_file_that_has_changed_is_read_again)
{
	write_file(path, "1007:100000:10\n");
	ck_assert_uint_eq(subuid_owner(&s, 100000), 1007);
	write_file(path, "1008:100000:10\n");
	ck_assert_uint_eq(subuid_owner(&s, 100000), 1008);
	OK(unlink(path));
	ck_assert_uint_eq(subuid_owner(&s, 100000), 100000);
}

TEST(lines_that_are_no_ranges_are_skipped)
{
	write_file(path, "\n:\nx:1\nx:1:\nx::1\nx:-1:5\nx:1:0\nx:1:4294967296\nx:5:1:1\n"
			 "1007:4294967290:4294967295\n1008:200000:10");
	ck_assert_uint_eq(subuid_owner(&s, 1), 1);
	ck_assert_uint_eq(subuid_owner(&s, 5), 5);
	ck_assert_uint_eq(subuid_owner(&s, UINT32_MAX), 1007);
	ck_assert_uint_eq(subuid_owner(&s, 200009), 1008);
}
