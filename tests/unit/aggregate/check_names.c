#include "lib/aggregate/names.h"

#include <string.h>

#include "tests/unit/suite.h"

#define R "\xef\xbf\xbd"

static const struct {
	const char *comm;
	size_t size;
	bool is_main;
	const char *main_path;
	const char *out;
} threads[] = {
	{"worker-1", 16, false, "/usr/bin/app", "worker-1"},
	{"app", 16, true, "/usr/bin/app", "main"},
	{"app", 16, false, "/usr/bin/app", "app"},
	{"app", 16, true, "app", "main"},
	{"ap", 16, true, "/usr/bin/app", "ap"},
	{"apps", 16, true, "/usr/bin/app", "apps"},
	{"renamed", 16, true, "/usr/bin/app", "renamed"},
	{"a-name-of-fifte", 16, true, "/bin/a-name-of-fifteen", "main"},
	{"a-name-of-fift", 16, true, "/bin/a-name-of-fifteen", "a-name-of-fift"},
	{"", 16, true, "", ""},
	/* Without a NUL all bytes are read, at most COMM_SIZE. */
	{"0123456789abcdefXX", 16, false, "", "0123456789abcdef"},
	{"0123456789abcdefXX", 18, false, "", "0123456789abcdef"},
	{"abc", 2, false, "", "ab"},
	{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 15, false, "",
	 R R R R R R R R R R R R R R R},
	{"a\nb", 4, false, "", "a" R "b"},
};

TESTS(thread_names, array_size(threads))
{
	char comm[32] = "", out[THREAD_NAME_SIZE];

	memcpy(comm, threads[_i].comm, strlen(threads[_i].comm));
	names_thread(comm, threads[_i].size, threads[_i].is_main, threads[_i].main_path, "", out);
	ck_assert_str_eq(out, threads[_i].out);
}

static const struct {
	const char *comm;
	bool is_main;
	const char *main_path;
	const char *out;
	const char *main_argv0;
} called[] = {
	/* The comm is not the name of the file, which was executed through a link. */
	{"python3", true, "/usr/bin/python3.11", "main", "python3"},
	{"python3", true, "/usr/bin/python3.11", "main", "/usr/bin/python3"},
	{"python3", false, "/usr/bin/python3.11", "python3", "python3"},
	{"python3.11", true, "/usr/bin/python3.11", "main", "python3"},
	{"redis-server", true, "/usr/bin/redis-check-rdb", "main", "/usr/bin/redis-server *:6379"},
	{"a-link-of-fifte", true, "/bin/file", "main", "./a-link-of-fifteen"},
	{"a-link-of-fift", true, "/bin/file", "a-link-of-fift", "./a-link-of-fifteen"},
	{"renamed", true, "/usr/bin/python3.11", "renamed", "python3"},
	{"python", true, "/usr/bin/python3.11", "python", "python3"},
	/* argv[0] is a text that the program, or its parent, has chosen. */
	{"nginx", true, "/usr/sbin/nginx", "main", "nginx: master process /usr/sbin/nginx"},
	{"gunicorn: maste", true, "/usr/bin/python3.11", "gunicorn: maste",
	 "gunicorn: master [app]"},
	{"bash", true, "/usr/bin/bash", "main", "-bash"},
	{"sh", true, "/usr/bin/dash", "sh", "-sh"},
	{"", true, "/bin/app", "", ""},
	{"", true, "/bin/app", "", "/bin/ "},
	{"app", true, "", "app", " app"},
	{"app", true, "", "app", "app/"},
};

TESTS(main_threads_by_argv0, array_size(called))
{
	char out[THREAD_NAME_SIZE];

	names_thread(called[_i].comm, strlen(called[_i].comm), called[_i].is_main,
		     called[_i].main_path, called[_i].main_argv0, out);
	ck_assert_str_eq(out, called[_i].out);
}

TEST(base_name)
{
	ck_assert_str_eq(names_base("/usr/lib/libc.so.6"), "libc.so.6");
	ck_assert_str_eq(names_base("[vdso]"), "[vdso]");
	ck_assert_str_eq(names_base("/tmp/"), "/tmp/");
	ck_assert_str_eq(names_base(""), "");
}

TEST(equal_names_get_a_number)
{
	struct profile_thread list[] = {
		{1, "main", 0},	  {2, "worker", 0},
		{3, "", 0},	  {4, "worker", UINT64_C(139822334576320)},
		{5, "", 0},	  {6, "other", 0},
		{7, "worker", 0}, {8, "work", UINT64_MAX},
		{9, "work", 0},
	};
	static const char *const expected[] = {
		"main",	    "worker (2)", "",		"worker (139822334576320)",
		"",	    "other",	  "worker (7)", "work (18446744073709551615)",
		"work (9)",
	};
	struct string_pool text;

	string_pool_init(&text, 1);
	OK(names_tell_apart(list, array_size(list), &text));
	for (size_t i = 0; i < array_size(list); i++) {
		ck_assert_uint_eq(list[i].tid, i + 1);
		ck_assert_str_eq(list[i].name, expected[i]);
	}
	string_pool_fini(&text);
}

TEST(none_or_one_thread)
{
	struct profile_thread one = {1, "main", 0};

	OK(names_tell_apart(NULL, 0, NULL));
	OK(names_tell_apart(&one, 1, NULL));
	ck_assert_str_eq(one.name, "main");
}
