#include "daemon/ctl/doctor/debian_package.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/suite.h"

#define LONG_NS (60 * NS_PER_SEC)

static char program[] = "/tmp/check_debian_package-XXXXXX";

/* Writes a script that stands for dpkg-query. */
static void script(const char *text)
{
	FILE *out;
	int fd = mkstemp(program);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fchmod(fd, 0700), 0);
	out = fdopen(fd, "w");
	ck_assert_ptr_nonnull(out);
	(void)fprintf(out, "#!/bin/sh\n%s\n", text);
	ck_assert_int_eq(fclose(out), 0);
}

static void clear(void)
{
	(void)unlink(program);
}

FIXTURE(NULL, clear)

static struct debian_file files[3] = {
	{.path = "/usr/lib/x86_64-linux-gnu/libc.so.6"},
	{.path = "/opt/own"},
	{.path = "/usr/bin/sleep"},
};

static void find(const char *text, uint64_t limit_ns)
{
	script(text);
	debian_package_find(program, limit_ns, files, 3);
}

TEST(a_package_is_found_by_either_path)
{
	find("echo libc6:amd64: /lib/x86_64-linux-gnu/libc.so.6\n"
	     "echo coreutils: /usr/bin/sleep",
	     LONG_NS);
	ck_assert_str_eq(files[0].package, "libc6");
	ck_assert_str_eq(files[1].package, "");
	ck_assert_str_eq(files[2].package, "coreutils");
}

TEST(both_paths_are_asked_for_and_no_pattern)
{
	struct debian_file odd = {.path = "/usr/lib/*"};

	/* The package is named by the arguments: how many there are, and the first path. */
	find("test \"$*\" = \"--search -- /usr/lib/x86_64-linux-gnu/libc.so.6 "
	     "/lib/x86_64-linux-gnu/libc.so.6 /opt/own /usr/bin/sleep /bin/sleep\" && "
	     "echo right: /opt/own",
	     LONG_NS);
	ck_assert_str_eq(files[1].package, "right");
	debian_package_find(program, LONG_NS, &odd, 1);
	ck_assert_str_eq(odd.package, "");
}

TEST(other_lines_name_no_package)
{
	find("echo diversion by dash from: /usr/bin/sleep\n"
	     "echo ': /opt/own'\n"
	     "echo /opt/own\n"
	     "echo first, second:amd64: /usr/lib/x86_64-linux-gnu/libc.so.6\n"
	     "printf 'half: /opt/own'",
	     LONG_NS);
	ck_assert_str_eq(files[0].package, "first");
	ck_assert_str_eq(files[1].package, "");
	ck_assert_str_eq(files[2].package, "");
}

TEST(a_program_that_hangs_is_killed)
{
	find("echo coreutils: /usr/bin/sleep\n"
	     "exec sleep 1000",
	     300 * NS_PER_MS);
	ck_assert_str_eq(files[2].package, "coreutils");
	ck_assert_str_eq(files[0].package, "");
}

TEST(without_the_program_nothing_is_known)
{
	debian_package_find("/nowhere/dpkg-query", LONG_NS, files, 3);
	ck_assert_str_eq(files[0].package, "");
}

TEST(the_debug_package)
{
	char name[DEBIAN_PACKAGE_NAME_SIZE];

	debian_package_debug("libc6", name);
	ck_assert_str_eq(name, "libc6-dbg");
	debian_package_debug("coreutils", name);
	ck_assert_str_eq(name, "coreutils-dbgsym");
}
