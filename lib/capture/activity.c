#include "lib/capture/activity.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nine numbers of at most 18 digits. */
#define ACTIVITY_LINE_MAX 256

static int open_file(int proc_fd, uint32_t tid, const char *name, int *ret_fd)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "task/%u/%s", tid, name);
	*ret_fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	return *ret_fd < 0 ? -errno : 0;
}

int activity_open(struct activity *a, int proc_fd, uint32_t tid)
{
	int r;

	*a = (struct activity){.schedstat_fd = -1, .syscall_fd = -1};
	r = open_file(proc_fd, tid, "schedstat", &a->schedstat_fd);
	if (r == 0)
		r = open_file(proc_fd, tid, "syscall", &a->syscall_fd);
	if (r < 0)
		activity_close(a);
	return r;
}

void activity_close(struct activity *a)
{
	close_fd(&a->schedstat_fd);
	close_fd(&a->syscall_fd);
}

static int read_line(int fd, char line[ACTIVITY_LINE_MAX])
{
	ssize_t n = pread(fd, line, ACTIVITY_LINE_MAX - 1, 0);

	if (n < 0)
		return -errno;
	line[n] = '\0';
	return n == 0 ? -ESRCH : 0;
}

bool activity_mark(const struct activity *a, struct activity_mark *ret)
{
	char line[ACTIVITY_LINE_MAX], *end;
	struct activity_mark mark;

	if (read_line(a->schedstat_fd, line) < 0)
		return false;
	mark.run_ns = strtoull(line, &end, 10);
	mark.wait_ns = strtoull(end, &end, 10);
	mark.slices = strtoull(end, &end, 10);
	if (mark.slices == 0)
		return false;
	*ret = mark;
	return true;
}

enum activity_state activity_parse(const char *line,
				   struct activity_place *ret_place)
{
	struct activity_place place;
	const char *at = line;
	int skip;
	char *end;

	if (strncmp(line, "running", 7) == 0)
		return ACTIVITY_RUNNING;
	place.call = strtol(at, &end, 10);
	if (end == at)
		return ACTIVITY_DEAD;
	/* In a call its six arguments stand before sp and pc. */
	skip = place.call == -1 ? 0 : 6;
	for (int i = 0; i < skip; i++)
		(void)strtoull(end, &end, 16);
	place.sp = strtoull(end, &end, 16);
	at = end;
	place.pc = strtoull(at, &end, 16);
	/* A thread on its way out has neither. */
	if (end == at || place.sp == 0)
		return ACTIVITY_DEAD;
	*ret_place = place;
	return ACTIVITY_BLOCKED;
}

enum activity_state activity_look(const struct activity *a,
				  struct activity_place *ret_place)
{
	char line[ACTIVITY_LINE_MAX];

	if (read_line(a->syscall_fd, line) < 0)
		return ACTIVITY_DEAD;
	return activity_parse(line, ret_place);
}
