#include "daemon/process/threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "daemon/process/process.h"
#include "lib/base/procfs.h"
#include "lib/base/small_file.h"

/* Field 3 of proc(5)'s stat; '\0' if the thread is gone. */
static char state_of(int32_t tid)
{
	char text[PROCFS_TEXT_MAX];
	const char *field;

	if (small_file_read(AT_FDCWD, procfs_path(tid, "stat").text, text, sizeof(text)) < 0)
		return '\0';
	field = procfs_stat_field(text, 3);
	return field == NULL ? '\0' : field[strspn(field, " ")];
}

/* Returns the first thread of pid for which found() returns true, or 0. */
static int32_t find_thread(int32_t pid, bool (*found)(int32_t tid, char state))
{
	struct dirent *entry;
	DIR *dir = opendir(procfs_path(pid, "task").text);
	int32_t ret = 0;

	while (dir != NULL && ret == 0 && (entry = readdir(dir)) != NULL) {
		const long tid = strtol(entry->d_name, NULL, 10);
		const char state = tid > 0 && tid <= INT32_MAX ? state_of((int32_t)tid) : '\0';

		if (state != '\0' && found((int32_t)tid, state))
			ret = (int32_t)tid;
	}
	if (dir != NULL)
		(void)closedir(dir);
	return ret;
}

static bool is_runnable(int32_t tid, char state)
{
	(void)tid;
	return state == 'R';
}

bool threads_any_runnable(int32_t pid)
{
	return find_thread(pid, is_runnable) != 0;
}

static bool is_stopped(int32_t tid, char state)
{
	(void)tid;
	return state == 'T' || state == 't';
}

bool threads_any_stopped(int32_t pid)
{
	return find_thread(pid, is_stopped) != 0;
}

/*
 * /proc/PID/syscall begins with the number of the system call that the thread sleeps in, or
 * -1 if it sleeps outside of one, as for a page fault (proc_pid_syscall() in
 * fs/proc/base.c). For a stopped thread the file shows the last call, which can have ended.
 */
static bool is_reading_memory(int32_t tid, char state)
{
	char text[PROCFS_TEXT_MAX];
	long call;

	if ((state != 'S' && state != 'D') ||
	    small_file_read(AT_FDCWD, procfs_path(tid, "syscall").text, text, sizeof(text)) < 0 ||
	    sscanf(text, "%ld", &call) != 1)
		return false;
	return call == SYS_process_vm_readv || call == SYS_pread64;
}

bool threads_any_reading_memory(int32_t pid)
{
	return find_thread(pid, is_reading_memory) != 0;
}

static bool is_living(int32_t tid, char state)
{
	(void)tid;
	return state != 'Z' && state != 'X';
}

size_t threads_find_tracers(int32_t pid, int32_t ours, struct threads_tracers *ret)
{
	DIR *dir = opendir(procfs_path(pid, "task").text);
	struct dirent *entry;
	int32_t tracer;
	size_t n = 0;

	*ret = (struct threads_tracers){0};
	while (dir != NULL && ret->traced_by_ours == 0 && (ours != 0 || ret->other == 0) &&
	       (entry = readdir(dir)) != NULL) {
		const long tid = strtol(entry->d_name, NULL, 10);

		if (tid <= 0 || tid > INT32_MAX)
			continue;
		n++;
		tracer = process_tracer((int32_t)tid);
		if (tracer != 0 && tracer == ours)
			ret->traced_by_ours = (int32_t)tid;
		else if (tracer != 0)
			ret->other = tracer;
	}
	if (dir != NULL)
		(void)closedir(dir);
	return n;
}

int32_t threads_find_living(int32_t pid)
{
	int32_t found = 0;

	if (state_of(pid) == 'Z')
		found = find_thread(pid, is_living);
	return found != 0 ? found : pid;
}
