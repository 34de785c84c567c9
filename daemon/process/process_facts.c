#include "daemon/process/process_facts.h"

#include <string.h>

#include "lib/base/digits.h"

#define CONTAINER_DIGITS 64
#define FARGATE_DIGITS	 32

static bool is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static size_t hex_digits(const char *text, size_t n)
{
	size_t i = 0;

	while (i < n && digits_value(text[i]) >= 0)
		i++;
	return i;
}

/* Finds a word of 64 hex digits in a name such as docker-ID.scope. */
static bool find_long_id(const char *name, size_t n, const char **ret)
{
	static const char monitor[] = "conmon-"; /* of Podman and CRI-O; it runs beside */
	const size_t n_monitor = sizeof(monitor) - 1;
	size_t length;

	for (size_t i = 0; i < n; i += length + 1) {
		for (length = 0; i + length < n && is_word(name[i + length]);)
			length++;
		if (length != CONTAINER_DIGITS || hex_digits(name + i, length) != length ||
		    (i >= n_monitor && memcmp(name + i - n_monitor, monitor, n_monitor) == 0))
			continue;
		*ret = name + i;
		return true;
	}
	return false;
}

/* TASK-NUMBER: 32 hex digits and a decimal number. */
static bool is_fargate_id(const char *name, size_t n)
{
	size_t i = FARGATE_DIGITS + 1;

	if (n <= i || hex_digits(name, n) != FARGATE_DIGITS || name[FARGATE_DIGITS] != '-')
		return false;
	while (i < n && name[i] >= '0' && name[i] <= '9')
		i++;
	return i == n;
}

/* Five groups of hex digits; the last one has four of them, or twelve, as in a UUID. */
static bool is_garden_id(const char *name, size_t n)
{
	static const size_t groups[] = {8, 4, 4, 4};
	size_t i = 0;

	for (size_t k = 0; k < sizeof(groups) / sizeof(groups[0]); k++) {
		if (hex_digits(name + i, n - i) != groups[k] || n - i == groups[k] ||
		    name[i + groups[k]] != '-')
			return false;
		i += groups[k] + 1;
	}
	return (n - i == 4 || n - i == 12) && hex_digits(name + i, n - i) == n - i;
}

static bool begins(const char *name, size_t n, const char *prefix)
{
	return n > strlen(prefix) && memcmp(name, prefix, strlen(prefix)) == 0;
}

static void copy_id(char ret[PROCESS_FACTS_CONTAINER_SIZE], const char *prefix, const char *id,
		    size_t n)
{
	const size_t n_prefix = strlen(prefix);

	ret[0] = '\0';
	if (n_prefix + n >= PROCESS_FACTS_CONTAINER_SIZE)
		return;
	memcpy(ret, prefix, n_prefix);
	memcpy(ret + n_prefix, id, n);
	ret[n_prefix + n] = '\0';
}

void process_facts_container(const char *cgroup, char ret[PROCESS_FACTS_CONTAINER_SIZE])
{
	static const char payload[] = "lxc.payload.";
	const size_t n_payload = sizeof(payload) - 1;
	const char *id;

	ret[0] = '\0';
	while (*cgroup != '\0') {
		const size_t n = strcspn(cgroup, "/");

		if (find_long_id(cgroup, n, &id))
			copy_id(ret, "", id, CONTAINER_DIGITS);
		else if (is_fargate_id(cgroup, n) || is_garden_id(cgroup, n))
			copy_id(ret, "", cgroup, n);
		else if (begins(cgroup, n, payload))
			copy_id(ret, PROCESS_FACTS_LXC, cgroup + n_payload, n - n_payload);
		cgroup += n + (cgroup[n] == '/');
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

bool process_facts_cgroup_in_hierarchy(const char *text, size_t n, const char *controllers,
				       char *ret, size_t size)
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

bool process_facts_cgroup(const char *text, size_t n, char *ret, size_t size)
{
	/*
	 * If both are mounted, systemd keeps units in version 1, and the path in the unified
	 * hierarchy is often only "/".
	 */
	if (process_facts_cgroup_in_hierarchy(text, n, "name=systemd", ret, size))
		return true;
	return process_facts_cgroup_in_hierarchy(text, n, "", ret, size);
}

bool process_facts_variable(const struct process_facts *f, const char *name, size_t n,
			    const char **ret, size_t *ret_n)
{
	for (size_t at = 0, length; at < f->environ_size; at += length + 1) {
		const char *entry = f->environ + at;

		length = strnlen(entry, f->environ_size - at);
		if (length <= n || memcmp(entry, name, n) != 0 || entry[n] != '=')
			continue;
		*ret = entry + n + 1;
		*ret_n = length - n - 1;
		return true;
	}
	return false;
}

bool process_facts_decline(const struct process_facts *f)
{
	static const char name[] = "SENTRY_PROFILER", off[] = "off";
	const char *value;
	size_t n;

	return process_facts_variable(f, name, strlen(name), &value, &n) && n == strlen(off) &&
	       memcmp(value, off, n) == 0;
}

int32_t process_facts_pid_file(const char *text, size_t n)
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
