#include "daemon/common/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/unit/suite.h"

TEST(an_executable_is_found_beside_this_one)
{
	char path[PATH_MAX];

	OK(spawn_find("check_spawn", path));
	ck_assert_ptr_nonnull(strstr(path, "/check_spawn"));
}

TEST(a_missing_executable_is_told_from_one_that_cannot_be_executed)
{
	static const char suffix[] = ".not_executable";
	char path[PATH_MAX], own[PATH_MAX];
	int fd;

	ck_assert_int_eq(spawn_find("check_spawn.not_there", path), -ENOENT);
	OK(spawn_find("check_spawn", own));
	ck_assert_uint_lt(strlen(own) + sizeof(suffix), sizeof(own));
	memcpy(own + strlen(own), suffix, sizeof(suffix));
	fd = open(own, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	(void)close(fd);
	ck_assert_int_eq(spawn_find("check_spawn.not_executable", path), -EACCES);
	(void)unlink(own);
}
