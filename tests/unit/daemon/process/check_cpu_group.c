#include "daemon/process/cpu_group.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "tests/unit/suite.h"

/* A directory that replaces /sys/fs/cgroup. */
static const char *mount;

static const struct {
	const char *name, *text; /* NULL: a directory */
} tree[] = {
	{"unified", NULL},
	{"unified/cpu.max", "max 100000\n"},
	{"unified/pod", NULL},
	{"unified/pod/cpu.max", "150000 100000\n"},
	{"unified/pod/cpu.stat", "usage_usec 9\nnr_throttled 3\nthrottled_usec 1500\n"},
	{"unified/pod/one", NULL},
	{"unified/pod/one/cpu.stat", "nr_throttled 1\nthrottled_usec 20\n"},
	{"unified/pod/one/cpu.max", "max 100000\n"},
	{"unified/pod/small", NULL},
	{"unified/pod/small/cpu.max", "500 100000\n"},
	{"unified/odd", NULL},
	{"unified/odd/cpu.max", "100\n"},
	{"old", NULL},
	{"old/cpu", NULL},
	{"old/cpu/cpu.cfs_quota_us", "-1\n"},
	{"old/cpu/cpu.cfs_period_us", "100000\n"},
	{"old/cpu/a", NULL},
	{"old/cpu/a/cpu.cfs_quota_us", "5000\n"},
	{"old/cpu/a/cpu.cfs_period_us", "50000\n"},
	{"old/cpu/a/cpu.stat", "nr_periods 4\nthrottled_time 77\n"},
	{"old/cpu,cpuacct", NULL},
	{"old/cpu,cpuacct/b", NULL},
	{"old/cpu,cpuacct/b/cpu.cfs_quota_us", "400000\n"},
	{"old/cpu,cpuacct/b/cpu.cfs_period_us", "100000\n"},
	/* In a container without a cgroup namespace the own group is mounted as the root. */
	{"inside", NULL},
	{"inside/cpu.max", "20000 100000\n"},
};

static void name_of(size_t i, char ret[128])
{
	(void)snprintf(ret, 128, "%s/%s", mount, tree[i].name);
}

static void make_tree(void)
{
	mount = suite_directory();
	for (size_t i = 0; i < array_size(tree); i++) {
		char name[128];
		FILE *file;

		name_of(i, name);
		if (tree[i].text == NULL) {
			OK(mkdir(name, 0700));
			continue;
		}
		file = fopen(name, "w");
		ck_assert_ptr_nonnull(file);
		ck_assert_int_ge(fputs(tree[i].text, file), 0);
		OK(fclose(file));
	}
}

TEST(the_least_quota_of_all_groups_counts)
{
	static const struct {
		const char *hierarchies, *groups;
		unsigned int percent;
	} v[] = {
		{"unified", "0::/\n", 0},
		{"unified", "0::/pod\n", 150},
		{"unified", "0::/pod/one\n", 150},
		{"unified", "0::/pod/one/that-is-gone\n", 150},
		{"unified", "0::/pod/small\n", 1},
		{"unified", "0::/odd\n", 0},
		{"unified", "1:name=systemd:/pod\n", 0},
		{"unified", "", 0},
		{"old", "3:cpu:/a\n2:cpuacct:/\n0::/\n", 10},
		{"old", "3:cpu:/\n0::/a\n", 0},
		{"old", "3:cpu,cpuacct:/b\n", 400},
		{"old", "3:cpuset:/a\n", 0},
		{"inside", "0::/docker/0123\n", 20},
		{"not-there", "0::/pod\n3:cpu:/a\n", 0},
	};

	make_tree();
	for (size_t i = 0; i < array_size(v); i++) {
		char at[128];

		(void)snprintf(at, sizeof(at), "%s/%s", mount, v[i].hierarchies);
		ck_assert_msg(cpu_group_quota(v[i].groups, strlen(v[i].groups), at) == v[i].percent,
			      "%s, %s", v[i].hierarchies, v[i].groups);
	}
}

TEST(the_longest_throttled_time_of_all_groups_counts)
{
	static const struct {
		const char *hierarchies, *groups;
		uint64_t ns;
	} v[] = {
		{"unified", "0::/pod\n", 1500000}, {"unified", "0::/pod/one\n", 1500000},
		{"unified", "0::/odd\n", 0},	   {"old", "3:cpu:/a\n0::/\n", 77},
		{"old", "3:cpu,cpuacct:/b\n", 0},
	};

	make_tree();
	for (size_t i = 0; i < array_size(v); i++) {
		char at[128];

		(void)snprintf(at, sizeof(at), "%s/%s", mount, v[i].hierarchies);
		ck_assert_msg(cpu_group_throttled_ns(v[i].groups, strlen(v[i].groups), at) ==
				      v[i].ns,
			      "%s, %s", v[i].hierarchies, v[i].groups);
	}
}
