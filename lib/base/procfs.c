#include "lib/base/procfs.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct procfs_path procfs_path(int64_t pid, const char *format, ...)
{
	struct procfs_path path;
	const int n = snprintf(path.text, sizeof(path.text), "/proc/%lld/", (long long)pid);
	va_list args;

	va_start(args, format);
	(void)vsnprintf(path.text + n, sizeof(path.text) - (size_t)n, format, args);
	va_end(args);
	return path;
}

struct procfs_path procfs_own_fd(int fd)
{
	struct procfs_path path;

	(void)snprintf(path.text, sizeof(path.text), "/proc/self/fd/%d", fd);
	return path;
}

int procfs_link(const char *path, char *ret, size_t size)
{
	const ssize_t n = readlink(path, ret, size - 1);

	ret[n < 0 ? 0 : n] = '\0';
	return n < 0 ? -errno : 0;
}

const char *procfs_stat_field(const char *text, int n)
{
	const char *at = strrchr(text, ')');

	for (int field = 2; at != NULL && field < n; field++)
		at = strchr(at + 1, ' ');
	return at;
}

uint64_t procfs_stat_number(const char *text, int n)
{
	const char *at = procfs_stat_field(text, n);

	return at == NULL ? 0 : strtoull(at, NULL, 10);
}

size_t procfs_numbers(const char *text, const char *key, int base, uint64_t *ret, size_t max)
{
	const char *at = strstr(text, key);
	size_t n = 0;
	char *end;

	if (at == NULL)
		return 0;
	for (at += strlen(key); n < max && (*at == '\t' || *at == ' '); at = end) {
		ret[n] = strtoull(at, &end, base);
		if (end == at)
			break;
		n++;
	}
	return n;
}
