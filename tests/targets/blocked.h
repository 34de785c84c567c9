/*
 * Where another thread of this program waits: for programs that say "ready"
 * when all their threads are where they are to be seen.
 */
#ifndef TESTS_TARGETS_BLOCKED_H
#define TESTS_TARGETS_BLOCKED_H

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

/* Call that another thread of this process is blocked in; -1: none. */
static inline long blocked_in(pid_t tid)
{
	char path[64], text[256];
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	if (n <= 0 || text[0] < '0' || text[0] > '9')
		return -1;
	text[n] = '\0';
	return strtol(text, NULL, 10);
}

#endif
