#include "daemon/broker/control/namespaced_tid.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/procfs.h"
#include "lib/base/small_file.h"

/*
 * Reads the ids in the line NSpid of a thread, one for each pid namespace from the broker's on.
 * *ret_last is the last id, which the thread has in its own namespace. Returns the number of ids; 0
 * if the thread has ended.
 */
static size_t read_numbers(int32_t pid, const char *tid, int32_t *ret_last)
{
	uint64_t numbers[PROCFS_NAMESPACES_MAX];
	char text[PROCFS_STATUS_MAX];
	size_t n;

	if (small_file_read(AT_FDCWD, procfs_path(pid, "task/%s/status", tid).text, text,
			    sizeof(text)) < 0)
		return 0;
	n = procfs_numbers(text, "\nNSpid:", 10, numbers, array_size(numbers));
	if (n > 0)
		*ret_last = (int32_t)numbers[n - 1];
	return n;
}

bool namespaced_tid_is_other(int32_t pid)
{
	char tid[16];
	int32_t last;

	(void)snprintf(tid, sizeof(tid), "%d", pid);
	return read_numbers(pid, tid, &last) > 1;
}

int namespaced_tid_find(int32_t pid, int32_t own, int32_t *ret)
{
	DIR *dir = opendir(procfs_path(pid, "task").text);
	const struct dirent *e;
	int r = -ESRCH;
	int32_t last;

	if (dir == NULL)
		return -ESRCH;
	for (size_t n = 0; n < NAMESPACED_TID_LOOKS_MAX && r < 0; n++) {
		e = readdir(dir);
		if (e == NULL)
			break;
		if (e->d_name[0] == '.' || read_numbers(pid, e->d_name, &last) == 0 || last != own)
			continue;
		*ret = (int32_t)strtol(e->d_name, NULL, 10);
		r = 0;
	}
	(void)closedir(dir);
	return r;
}
