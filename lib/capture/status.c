#include "lib/capture/status.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/small_file.h"

/* A field's number, 0 where there is none. False if it cannot be read. */
static bool number(uint32_t tid, const char *key, int base, uint64_t *ret)
{
	char path[64], text[4096];
	const char *line;

	(void)snprintf(path, sizeof(path), "/proc/%u/status", tid);
	if (small_file_read(AT_FDCWD, path, text, sizeof(text)) < 0)
		return false;
	line = strstr(text, key);
	*ret = line == NULL ? 0 : strtoull(line + strlen(key), NULL, base);
	return true;
}

static bool holds(uint64_t signals, int signal)
{
	return (signals >> (signal - 1) & 1) != 0;
}

bool status_is_filtered(uint32_t tid)
{
	uint64_t mode;

	return !number(tid, "\nSeccomp:\t", 10, &mode) || mode != 0;
}

bool status_ignores(uint32_t tid, int signal)
{
	uint64_t ignored;

	return number(tid, "\nSigIgn:\t", 16, &ignored) &&
	       holds(ignored, signal);
}

bool status_goes_unnoticed(uint32_t tid, int signal)
{
	uint64_t caught;

	if (status_ignores(tid, signal))
		return true;
	return (signal == SIGCHLD || signal == SIGCONT || signal == SIGURG ||
		signal == SIGWINCH) &&
	       number(tid, "\nSigCgt:\t", 16, &caught) &&
	       !holds(caught, signal);
}

bool status_has_pending(uint32_t tid)
{
	uint64_t own, shared, blocked;

	return number(tid, "\nSigPnd:\t", 16, &own) &&
	       number(tid, "\nShdPnd:\t", 16, &shared) &&
	       number(tid, "\nSigBlk:\t", 16, &blocked) &&
	       ((own | shared) & ~blocked) != 0;
}

bool status_dumps_core(uint32_t tid)
{
	uint64_t dumps;

	return !number(tid, "\nCoreDumping:\t", 10, &dumps) || dumps != 0;
}
