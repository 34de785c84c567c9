#include "lib/capture/proc/status.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/procfs.h"

/*
 * The fields that are read are behind the list of groups, which may have 65,536 entries
 * (NGROUPS_MAX). The fields behind it take 1 KB, or 3 KB if the kernel knows 8,192 processors.
 */
#define END_BYTES 8192

/* include/linux/sched.h, since Linux 5.12. */
#define PF_IO_WORKER 0x10u

/* Reads the end of the file: at least END_BYTES / 2 bytes if the file is longer than that. */
static enum proc_outcome read_end(uint32_t tid, char ret[END_BYTES + 1])
{
	enum proc_outcome outcome;
	size_t used = 0, room, n;
	uint64_t at = 0;
	int fd;

	outcome = proc_open(AT_FDCWD, procfs_path(tid, "status").text, O_RDONLY, &fd);
	if (outcome != PROC_READ)
		return outcome;
	do {
		if (used == END_BYTES) {
			used = END_BYTES / 2;
			memmove(ret, ret + END_BYTES - used, used);
		}
		room = END_BYTES - used;
		n = 0;
		outcome = proc_read_at(fd, at, ret + used, room, &n);
		at += n;
		used += n;
	} while (n > 0 && n == room);
	close_fd(&fd);
	ret[used] = '\0';
	return outcome;
}

static uint64_t number_in(const char *text, const char *key, int base)
{
	uint64_t number = 0;

	(void)procfs_numbers(text, key, base, &number, 1);
	return number;
}

/* Reads the number of a field; 0 if there is no such field. */
static enum proc_outcome read_number(uint32_t tid, const char *key, int base, uint64_t *ret)
{
	char text[END_BYTES + 1];
	enum proc_outcome outcome = read_end(tid, text);

	if (outcome == PROC_READ)
		*ret = number_in(text, key, base);
	return outcome;
}

/* The target chooses its name in the first line, but the name cannot contain a newline. */
enum proc_outcome status_read_state(int proc_fd, uint32_t tid, struct status_state *ret)
{
	static const char state_key[] = "\nState:\t";
	char path[64], text[PROCFS_TEXT_MAX];
	uint64_t tracer;
	const char *state;
	enum proc_outcome outcome;

	(void)snprintf(path, sizeof(path), "task/%u/status", tid);
	outcome = proc_read_text(proc_fd, path, text, sizeof(text));
	if (outcome != PROC_READ)
		return outcome;
	state = strstr(text, state_key);
	if (state == NULL || procfs_numbers(text, "\nTracerPid:", 10, &tracer, 1) == 0) {
		errno = EPROTO;
		return PROC_LACK;
	}
	ret->letter = state[sizeof(state_key) - 1];
	ret->tracer = (uint32_t)tracer;
	return PROC_READ;
}

bool status_is_dead(const struct status_state *state)
{
	return state->letter == 'Z' || state->letter == 'X';
}

static bool holds(uint64_t signals, int signal)
{
	return (signals >> (signal - 1) & 1) != 0;
}

bool status_is_filtered(uint32_t tid)
{
	uint64_t mode;

	return read_number(tid, "\nSeccomp:", 10, &mode) != PROC_READ || mode != 0;
}

static bool field_holds(uint32_t tid, const char *key, int signal)
{
	uint64_t signals;

	return read_number(tid, key, 16, &signals) == PROC_READ && holds(signals, signal);
}

bool status_ignores(uint32_t tid, int signal)
{
	return field_holds(tid, "\nSigIgn:", signal);
}

bool status_catches(uint32_t tid, int signal)
{
	return field_holds(tid, "\nSigCgt:", signal);
}

bool status_blocks(uint32_t tid, int signal)
{
	return field_holds(tid, "\nSigBlk:", signal);
}

bool status_has_default_action(uint32_t tid, int signal)
{
	char text[END_BYTES + 1];

	return read_end(tid, text) == PROC_READ &&
	       !holds(number_in(text, "\nSigIgn:", 16) | number_in(text, "\nSigCgt:", 16), signal);
}

bool status_goes_unnoticed(uint32_t tid, int signal)
{
	const bool does_nothing =
		signal == SIGCHLD || signal == SIGCONT || signal == SIGURG || signal == SIGWINCH;
	char text[END_BYTES + 1];

	return read_end(tid, text) == PROC_READ &&
	       (holds(number_in(text, "\nSigIgn:", 16), signal) ||
		(does_nothing && !holds(number_in(text, "\nSigCgt:", 16), signal)));
}

bool status_has_pending(uint32_t tid)
{
	char text[END_BYTES + 1];

	return read_end(tid, text) == PROC_READ &&
	       ((number_in(text, "\nSigPnd:", 16) | number_in(text, "\nShdPnd:", 16)) &
		~number_in(text, "\nSigBlk:", 16)) != 0;
}

static enum proc_answer answer(bool is)
{
	return is ? PROC_YES : PROC_NO;
}

/* text: the content of stat. */
static bool is_worker(const char *text)
{
	static const char name[] = " (iou-";
	const char *at = strchr(text, ' ');

	return at != NULL && strncmp(at, name, sizeof(name) - 1) == 0 &&
	       (procfs_stat_number(text, 9) & PF_IO_WORKER) != 0;
}

enum proc_answer status_is_worker(uint32_t tid)
{
	char text[512];

	/*
	 * The path uses task/, because the kernel would add up the times of all threads for the
	 * path without it.
	 */
	switch (proc_read_text(AT_FDCWD, procfs_path(tid, "task/%u/stat", tid).text, text,
			       sizeof(text))) {
	case PROC_READ:
		return answer(is_worker(text));
	case PROC_GONE:
		return PROC_NO;
	case PROC_LACK:
		break;
	}
	return PROC_UNKNOWN;
}

enum proc_answer status_dumps_core(uint32_t tid)
{
	uint64_t dumps;

	switch (read_number(tid, "\nCoreDumping:", 10, &dumps)) {
	case PROC_READ:
		return answer(dumps != 0);
	case PROC_GONE:
		return PROC_NO;
	case PROC_LACK:
		break;
	}
	return PROC_UNKNOWN;
}
