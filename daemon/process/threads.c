#include "daemon/process/threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "daemon/process/process.h"
#include "lib/base/procfs.h"
#include "lib/base/small_file.h"

/* Returns field 3 of the text of a stat file; '\0' if there is none. */
static char state_in(const char *text)
{
	const char *field = procfs_stat_field(text, 3);

	return field == NULL ? '\0' : field[strspn(field, " ")];
}

/* Returns '\0' if the thread is gone. */
static char state_of(int32_t tid)
{
	char text[PROCFS_TEXT_MAX];

	if (small_file_read(AT_FDCWD, procfs_path(tid, "stat").text, text, sizeof(text)) < 0)
		return '\0';
	return state_in(text);
}

/*
 * Returns the first thread of pid for which found() returns true, or 0. state: field 3 of proc(5)'s
 * stat.
 */
static int32_t find_thread(int32_t pid, bool (*found)(void *ctx, int32_t tid, char state),
			   void *ctx)
{
	struct dirent *entry;
	DIR *dir = opendir(procfs_path(pid, "task").text);
	int32_t ret = 0;

	while (dir != NULL && ret == 0 && (entry = readdir(dir)) != NULL) {
		const long tid = strtol(entry->d_name, NULL, 10);
		const char state = tid > 0 && tid <= INT32_MAX ? state_of((int32_t)tid) : '\0';

		if (state != '\0' && found(ctx, (int32_t)tid, state))
			ret = (int32_t)tid;
	}
	if (dir != NULL)
		(void)closedir(dir);
	return ret;
}

static bool is_runnable(void *ctx, int32_t tid, char state)
{
	(void)ctx, (void)tid;
	return state == 'R';
}

bool threads_any_runnable(int32_t pid)
{
	return find_thread(pid, is_runnable, NULL) != 0;
}

static bool is_stopped(void *ctx, int32_t tid, char state)
{
	(void)ctx, (void)tid;
	return state == 'T' || state == 't';
}

bool threads_any_stopped(int32_t pid)
{
	return find_thread(pid, is_stopped, NULL) != 0;
}

/*
 * /proc/PID/syscall begins with the number of the system call that the thread sleeps in, or
 * -1 if it sleeps outside of one, as for a page fault (proc_pid_syscall() in
 * fs/proc/base.c). For a stopped thread the file shows the last call, which can have ended.
 */
static bool is_reading_memory(void *ctx, int32_t tid, char state)
{
	char text[PROCFS_TEXT_MAX];
	long call;

	(void)ctx;
	if ((state != 'S' && state != 'D') ||
	    small_file_read(AT_FDCWD, procfs_path(tid, "syscall").text, text, sizeof(text)) < 0 ||
	    sscanf(text, "%ld", &call) != 1)
		return false;
	return call == SYS_process_vm_readv || call == SYS_pread64;
}

bool threads_any_reading_memory(int32_t pid)
{
	return find_thread(pid, is_reading_memory, NULL) != 0;
}

static bool is_living(void *ctx, int32_t tid, char state)
{
	(void)ctx, (void)tid;
	return state != 'Z' && state != 'X';
}

int32_t threads_find_living(int32_t pid)
{
	int32_t found = 0;

	if (state_of(pid) == 'Z')
		found = find_thread(pid, is_living, NULL);
	return found != 0 ? found : pid;
}

/* The pids of the processes that trace threads of a process. */
struct tracers {
	int32_t but; /* is not looked for */
	int32_t found;
};

static bool is_traced(void *ctx, int32_t tid, char state)
{
	struct tracers *tracers = ctx;

	(void)state;
	tracers->found = process_tracer(tid);
	return tracers->found != 0 && tracers->found != tracers->but;
}

int32_t threads_find_tracer(int32_t pid, int32_t but)
{
	struct tracers tracers = {.but = but};

	return find_thread(pid, is_traced, &tracers) != 0 ? tracers.found : 0;
}

struct all_tracers {
	int32_t ours;
	size_t n;
	struct threads_tracers *found;
};

static bool is_traced_by_ours(void *ctx, int32_t tid, char state)
{
	struct all_tracers *all = ctx;
	const int32_t tracer = process_tracer(tid);

	(void)state;
	all->n++;
	if (tracer == 0)
		return false;
	if (tracer == all->ours)
		all->found->traced_by_ours = tid;
	else
		all->found->other = tracer;
	return tracer == all->ours;
}

size_t threads_find_tracers(int32_t pid, int32_t ours, struct threads_tracers *ret)
{
	struct all_tracers all = {.ours = ours, .found = ret};

	*ret = (struct threads_tracers){0};
	(void)find_thread(pid, is_traced_by_ours, &all);
	return all.n;
}

bool threads_blocked_signals(int32_t pid, int32_t tid, uint32_t *ret)
{
	enum { BLOCKED = 32 }; /* field of proc_pid_stat(5) */
	char text[PROCFS_TEXT_MAX];
	char state;

	if (small_file_read(AT_FDCWD, procfs_path(pid, "task/%d/stat", tid).text, text,
			    sizeof(text)) < 0)
		return false;
	state = state_in(text);
	*ret = (uint32_t)procfs_stat_number(text, BLOCKED);
	return state != '\0' && is_living(NULL, tid, state);
}

struct children {
	int32_t pid;
	void (*found)(void *ctx, int32_t child);
	void *ctx;
};

/* Returns false, so that find_thread() goes on to the next thread. */
static bool list_children(void *ctx, int32_t tid, char state)
{
	const struct children *c = ctx;
	FILE *file = fopen(procfs_path(c->pid, "task/%d/children", tid).text, "re");
	int32_t child;

	(void)state;
	while (file != NULL && fscanf(file, "%" SCNd32, &child) == 1)
		c->found(c->ctx, child);
	if (file != NULL)
		(void)fclose(file);
	return false;
}

void threads_each_child(int32_t pid, void (*found)(void *ctx, int32_t child), void *ctx)
{
	struct children children = {.pid = pid, .found = found, .ctx = ctx};

	(void)find_thread(pid, list_children, &children);
}
