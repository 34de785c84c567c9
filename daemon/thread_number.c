#include "daemon/thread_number.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/small_file.h"

/* Of the kernel's making, and much shorter. */
#define STATUS_MAX 4096

/*
 * The last number of NSpid, and how many there are: one for each namespace,
 * from ours on. The kernel escapes newlines in the name, so the key is no part
 * of it. 0: the thread is gone.
 */
static size_t read_numbers(int32_t pid, const char *tid, int32_t *ret_last)
{
	static const char key[] = "\nNSpid:";
	char path[64], text[STATUS_MAX], *at, *end;
	size_t n = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%s/status", pid, tid);
	if (small_file_read(AT_FDCWD, path, text, sizeof(text)) < 0)
		return 0;
	at = strstr(text, key);
	if (at == NULL)
		return 0;
	for (at += sizeof(key) - 1; *at == '\t'; at = end, n++) {
		*ret_last = (int32_t)strtol(at + 1, &end, 10);
		if (end == at + 1)
			return n;
	}
	return n;
}

bool thread_number_differs(int32_t pid)
{
	char tid[16];
	int32_t last;

	(void)snprintf(tid, sizeof(tid), "%d", pid);
	return read_numbers(pid, tid, &last) > 1;
}

int thread_number_find(int32_t pid, int32_t own, int32_t *ret)
{
	const struct dirent *e;
	char path[64];
	int r = -ESRCH;
	int32_t last;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (dir == NULL)
		return -ESRCH;
	for (size_t n = 0; n < THREAD_NUMBER_LOOKS_MAX && r < 0; n++) {
		e = readdir(dir);
		if (e == NULL)
			break;
		if (e->d_name[0] == '.' ||
		    read_numbers(pid, e->d_name, &last) == 0 || last != own)
			continue;
		*ret = (int32_t)strtol(e->d_name, NULL, 10);
		r = 0;
	}
	(void)closedir(dir);
	return r;
}
