#include "daemon/process/facts.h"

#include <string.h>

#include "lib/base/digits.h"

static bool is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

void facts_container(const char *cgroup, char ret[FACTS_CONTAINER_SIZE])
{
	const size_t digits = FACTS_CONTAINER_SIZE - 1;

	ret[0] = '\0';
	while (*cgroup != '\0') {
		size_t n = 0, hex = 0;

		for (; is_word(cgroup[n]); n++)
			hex += digits_value(cgroup[n]) >= 0;
		if (n == digits && hex == digits) {
			memcpy(ret, cgroup, n);
			ret[n] = '\0';
		}
		cgroup += n == 0 ? 1 : n;
	}
}

/* Parses a line of cgroups(7): number:controllers:path. */
static bool path_of_line(const char *line, size_t n, const char *controllers, const char **ret,
			 size_t *ret_n)
{
	const char *end = line + n, *first, *second;

	first = memchr(line, ':', n);
	if (first == NULL)
		return false;
	first++;
	second = memchr(first, ':', (size_t)(end - first));
	if (second == NULL || (size_t)(second - first) != strlen(controllers) ||
	    memcmp(first, controllers, strlen(controllers)) != 0)
		return false;
	*ret = second + 1;
	*ret_n = (size_t)(end - *ret);
	return true;
}

bool facts_cgroup_in_hierarchy(const char *text, size_t n, const char *controllers, char *ret,
			       size_t size)
{
	while (n > 0) {
		const char *end = memchr(text, '\n', n), *path;
		size_t line = end == NULL ? n : (size_t)(end - text), length;

		if (path_of_line(text, line, controllers, &path, &length)) {
			if (length >= size || memchr(path, '\0', length) != NULL)
				return false;
			memcpy(ret, path, length);
			ret[length] = '\0';
			return true;
		}
		if (end == NULL)
			break;
		text += line + 1;
		n -= line + 1;
	}
	return false;
}

bool facts_cgroup(const char *text, size_t n, char *ret, size_t size)
{
	/*
	 * If both are mounted, systemd keeps units in version 1, and the path in the unified
	 * hierarchy is often only "/".
	 */
	if (facts_cgroup_in_hierarchy(text, n, "name=systemd", ret, size))
		return true;
	return facts_cgroup_in_hierarchy(text, n, "", ret, size);
}

int32_t facts_pid_file(const char *text, size_t n)
{
	int32_t pid = 0;
	size_t i = 0;

	while (i < n && (text[i] == ' ' || text[i] == '\t'))
		i++;
	if (i == n || text[i] < '1' || text[i] > '9')
		return 0;
	for (; i < n && text[i] >= '0' && text[i] <= '9'; i++)
		if (__builtin_mul_overflow(pid, 10, &pid) ||
		    __builtin_add_overflow(pid, text[i] - '0', &pid))
			return 0;
	/* Further lines, as in PostgreSQL's pid files, are ignored. */
	if (i < n && text[i] != '\n' && text[i] != '\r' && text[i] != ' ' && text[i] != '\0')
		return 0;
	return pid;
}
