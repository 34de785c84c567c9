#include "daemon/capture/cpu_quota.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "daemon/process/facts.h"
#include "lib/base/small_file.h"

/* Each hierarchy of version 1 has a line of its own; a path is rarely long. */
#define GROUPS_MAX 8192

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
static unsigned int quota_of(const char *group, bool is_unified)
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
static unsigned int lesser(unsigned int a, unsigned int b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

/* Returns the least quota of a group and its parents. */
static unsigned int least_of(const char *root, const char *path, bool is_unified)
{
	unsigned int least = 0;
	char group[PATH_MAX];
	size_t depth = strlen(root);
	int n = snprintf(group, sizeof(group), "%s%s", root, path);

	if (n < 0 || (size_t)n >= sizeof(group))
		return 0;
	for (;;) {
		char *last;

		least = lesser(least, quota_of(group, is_unified));
		last = strrchr(group + depth, '/');
		if (last == NULL)
			return least;
		*last = '\0';
	}
}

unsigned int cpu_quota_least(const char *groups, size_t n, const char *mount)
{
	/* Version 1 mounts each hierarchy at the names of its controllers. */
	static const char *const hierarchies[] = {"", "cpu,cpuacct", "cpuacct,cpu", "cpu"};
	unsigned int least = 0;
	char path[PATH_MAX], root[PATH_MAX];

	for (size_t i = 0; i < array_size(hierarchies); i++) {
		if (!facts_cgroup_in_hierarchy(groups, n, hierarchies[i], path, sizeof(path)))
			continue;
		(void)snprintf(root, sizeof(root), "%s/%s", mount, hierarchies[i]);
		least = lesser(least, least_of(root, path, *hierarchies[i] == '\0'));
	}
	return least;
}

unsigned int cpu_quota_own(void)
{
	char groups[GROUPS_MAX];

	if (small_file_read(AT_FDCWD, "/proc/self/cgroup", groups, sizeof(groups)) < 0)
		return 0;
	return cpu_quota_least(groups, strlen(groups), "/sys/fs/cgroup");
}
