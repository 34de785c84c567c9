/*
 * A program for the tests of LeakSanitizer: prints "ready PID", waits until its standard input is
 * closed, and ends with 0. It leaks nothing. A line of its standard input is the path of a program
 * that it executes.
 */
#ifndef TESTS_TARGETS_LEAKS_H
#define TESTS_TARGETS_LEAKS_H

#include "target.h"

int main(void)
{
	char path[4096];
	ssize_t n;

	ready(getpid());
	n = read(STDIN_FILENO, path, sizeof(path) - 1);
	if (n <= 0)
		return 0;
	path[n - 1] = '\0';
	execl(path, path, NULL);
	return 1;
}

#endif
