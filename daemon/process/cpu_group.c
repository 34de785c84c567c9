#include "daemon/process/cpu_group.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/process/process_facts.h"
#include "lib/base/small_file.h"

static bool read_in(const char *group, const char *name, char *ret, size_t size)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s", group, name);

	return n > 0 && (size_t)n < sizeof(path) && small_file_read(AT_FDCWD, path, ret, size) == 0;
}

static unsigned int percent_of(long long quota, long long period)
{
	const double percent = 100.0 * (double)quota / (double)period;

	return percent < 1 ? 1 : percent < UINT_MAX ? (unsigned int)percent : UINT_MAX;
}

/* cpu.max is "QUOTA PERIOD" or "max PERIOD"; version 1 has -1 for none. */
static uint64_t quota_of(const char *group, bool is_unified)
{
	long long quota, period;
	char text[64], period_text[32];

	if (is_unified) {
		if (!read_in(group, "cpu.max", text, sizeof(text)) ||
		    sscanf(text, "%lld %lld", &quota, &period) != 2)
			return 0;
	} else if (!read_in(group, "cpu.cfs_quota_us", text, sizeof(text)) ||
		   !read_in(group, "cpu.cfs_period_us", period_text, sizeof(period_text)) ||
		   sscanf(text, "%lld", &quota) != 1 || sscanf(period_text, "%lld", &period) != 1)
		return 0;
	return quota <= 0 || period <= 0 ? 0 : percent_of(quota, period);
}

/* Returns the lesser of two quotas, where 0 means none. */
static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

/* cpu.stat has lines "NAME NUMBER"; version 1 counts in ns. */
static uint64_t throttled_of(const char *group, bool is_unified)
{
	const char *name = is_unified ? "throttled_usec " : "throttled_time ", *at;
	char text[2048];

	if (!read_in(group, "cpu.stat", text, sizeof(text)))
		return 0;
	at = strstr(text, name);
	return at == NULL ? 0 : strtoull(at + strlen(name), NULL, 10) * (is_unified ? 1000 : 1);
}

typedef uint64_t (*read_fn)(const char *group, bool is_unified);
typedef uint64_t (*choose_fn)(uint64_t a, uint64_t b);

/* Reads a figure of a group and of each of its parents. Returns the one that choose chooses. */
static uint64_t of_parents(const char *root, const char *path, bool is_unified, read_fn read,
			   choose_fn choose)
{
	uint64_t chosen = 0;
	char group[PATH_MAX];
	size_t depth = strlen(root);
	int n = snprintf(group, sizeof(group), "%s%s", root, path);

	if (n < 0 || (size_t)n >= sizeof(group))
		return 0;
	for (;;) {
		char *last;

		chosen = choose(chosen, read(group, is_unified));
		last = strrchr(group + depth, '/');
		if (last == NULL)
			return chosen;
		*last = '\0';
	}
}

/* The same in all hierarchies. */
static uint64_t of_groups(const char *groups, size_t n, const char *mount, read_fn read,
			  choose_fn choose)
{
	/* Version 1 mounts each hierarchy at the names of its controllers. */
	static const char *const hierarchies[] = {"", "cpu,cpuacct", "cpuacct,cpu", "cpu"};
	uint64_t chosen = 0;
	char path[PATH_MAX], root[PATH_MAX];

	for (size_t i = 0; i < array_size(hierarchies); i++) {
		if (!process_facts_cgroup_in_hierarchy(groups, n, hierarchies[i], path,
						       sizeof(path)))
			continue;
		(void)snprintf(root, sizeof(root), "%s/%s", mount, hierarchies[i]);
		chosen = choose(chosen,
				of_parents(root, path, *hierarchies[i] == '\0', read, choose));
	}
	return chosen;
}

unsigned int cpu_group_quota(const char *groups, size_t n, const char *mount)
{
	return (unsigned int)of_groups(groups, n, mount, quota_of, lesser);
}

unsigned int cpu_group_own_quota(void)
{
	char groups[CPU_GROUP_TEXT];

	if (small_file_read(AT_FDCWD, "/proc/self/cgroup", groups, sizeof(groups)) < 0)
		return 0;
	return cpu_group_quota(groups, strlen(groups), CPU_GROUP_MOUNT);
}

uint64_t cpu_group_throttled_ns(const char *groups, size_t n, const char *mount)
{
	return of_groups(groups, n, mount, throttled_of, max_u64);
}
