#include "daemon/broker/control/namespaced_tid.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>

#include "lib/base/procfs.h"
#include "lib/base/small_file.h"

/*
 * Reads the ids in the line NSpid of a thread, one for each pid namespace from the broker's on.
 * *ret_last is the last id, which the thread has in its own namespace. Returns the number of ids; 0
 * if the thread has ended.
 */
static size_t read_numbers(int32_t pid, int32_t tid, int32_t *ret_last)
{
	uint64_t numbers[PROCFS_NAMESPACES_MAX];
	char text[PROCFS_STATUS_MAX];
	size_t n;

	if (small_file_read(AT_FDCWD, procfs_path(pid, "task/%d/status", tid).text, text,
			    sizeof(text)) < 0)
		return 0;
	n = procfs_numbers(text, "\nNSpid:", 10, numbers, array_size(numbers));
	if (n > 0)
		*ret_last = (int32_t)numbers[n - 1];
	return n;
}

bool namespaced_tid_is_other(int32_t pid)
{
	int32_t last;

	return read_numbers(pid, pid, &last) > 1;
}

/* Lists the threads of a process. Returns how many there are, at most NAMESPACED_TID_LOOKS_MAX. */
static size_t list_threads(int32_t pid, int32_t ret[NAMESPACED_TID_LOOKS_MAX])
{
	DIR *dir = opendir(procfs_path(pid, "task").text);
	const struct dirent *e;
	size_t n = 0;

	while (dir != NULL && n < NAMESPACED_TID_LOOKS_MAX && (e = readdir(dir)) != NULL)
		if (e->d_name[0] != '.')
			ret[n++] = (int32_t)strtol(e->d_name, NULL, 10);
	if (dir != NULL)
		(void)closedir(dir);
	return n;
}

/*
 * Returns the index of the thread, or n. Both namespaces give ids in ascending order, until they
 * begin again with low ones, and the kernel lists threads in the order of their births.
 */
static size_t search_in_order(int32_t pid, int32_t own, const int32_t *tids, size_t n,
			      size_t *looks)
{
	size_t low = 0, high = n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		int32_t last;

		++*looks;
		if (read_numbers(pid, tids[middle], &last) == 0)
			return n;
		if (last == own)
			return middle;
		if (last < own)
			low = middle + 1;
		else
			high = middle;
	}
	return n;
}

int namespaced_tid_find(int32_t pid, int32_t own, int32_t *ret, size_t *ret_looks)
{
	static int32_t tids[NAMESPACED_TID_LOOKS_MAX];
	const size_t n = list_threads(pid, tids);
	size_t looks = 0, at = search_in_order(pid, own, tids, n, &looks);
	int32_t last;

	/* If the list was cut, the thread is most likely behind its end. */
	for (size_t i = 0; n < NAMESPACED_TID_LOOKS_MAX && i < n && at == n; i++, looks++)
		if (read_numbers(pid, tids[i], &last) > 0 && last == own)
			at = i;
	*ret_looks = looks;
	if (at == n)
		return -ESRCH;
	*ret = tids[at];
	return 0;
}
