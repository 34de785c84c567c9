#include "daemon/process/exe_link.h"

#include <stdio.h>
#include <unistd.h>

#include "tests/unit/suite.h"

TEST(an_absolute_path_without_wildcards_is_a_single_path)
{
	ck_assert(exe_link_is_path("/usr/bin/redis-server"));
	ck_assert(!exe_link_is_path(""));
	ck_assert(!exe_link_is_path("redis-server"));
	ck_assert(!exe_link_is_path("/usr/bin/python3*"));
	ck_assert(!exe_link_is_path("/usr/bin/python?"));
}

TEST(links_and_missing_files_are_described)
{
	const char *dir = suite_directory();
	char link[64], none[64];
	char resolved[PATH_MAX], why[EXE_LINK_TEXT_MAX];

	(void)snprintf(link, sizeof(link), "%s/link", dir);
	(void)snprintf(none, sizeof(none), "%s/none", dir);
	OK(symlink("/proc", link));
	OK(exe_link_resolve(link, resolved));
	ck_assert_str_eq(resolved, "/proc");
	exe_link_text(link, 0, resolved, why);
	ck_assert_str_eq(why, "is a symbolic link and matches no process; use exe = /proc");
	exe_link_text("/proc", 0, resolved, why);
	ck_assert_str_eq(why, "");
	ck_assert_int_eq(exe_link_resolve(none, resolved), -ENOENT);
	exe_link_text("/opt/server", -ENOENT, "", why);
	ck_assert_str_eq(why, "no such file on this host (a container can have it)");
	/* The service's own /home is empty. */
	exe_link_text("/home/a/server", -ENOENT, "", why);
	HAS(why, "the systemd service sees none below /home");
	/* With EACCES it is unknown whether the file exists. */
	exe_link_text(none, -EACCES, "", why);
	ck_assert_str_eq(why, "");
}
