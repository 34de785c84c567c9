#include "lib/capture/status.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/small_file.h"

/* A field's number; 0 if it cannot be read. */
static uint64_t number(uint32_t tid, const char *key, int base)
{
	char path[64], text[4096];
	const char *line;

	(void)snprintf(path, sizeof(path), "/proc/%u/status", tid);
	if (small_file_read(AT_FDCWD, path, text, sizeof(text)) < 0)
		return 0;
	line = strstr(text, key);
	return line == NULL ? 0 : strtoull(line + strlen(key), NULL, base);
}

bool status_is_filtered(uint32_t tid)
{
	return number(tid, "\nSeccomp:\t", 10) == 2;
}

bool status_ignores(uint32_t tid, int signal)
{
	return number(tid, "\nSigIgn:\t", 16) >> (signal - 1) & 1;
}

bool status_goes_unnoticed(uint32_t tid, int signal)
{
	if (status_ignores(tid, signal))
		return true;
	return (signal == SIGCHLD || signal == SIGCONT || signal == SIGURG ||
		signal == SIGWINCH) &&
	       (number(tid, "\nSigCgt:\t", 16) >> (signal - 1) & 1) == 0;
}
