/*
 * Reads the credentials of a process from /proc: its ids and capabilities. By these the kernel
 * decides what the process may do, and which other processes may trace it.
 */
#ifndef DAEMON_PROCESS_CREDENTIALS_H
#define DAEMON_PROCESS_CREDENTIALS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/process/ids.h"

struct credentials {
	struct ids ids;
	uint64_t permitted; /* capabilities, a bit for each, in the process's user namespace */
	uint64_t files_uid; /* the owner of the files in /proc/PID: process_owner() */
};

/*
 * Parses status, the text of /proc/PID/status. files_uid is the result of process_owner(). Returns
 * false if the text lacks a line that is needed, or if files_uid is UINT32_MAX, by which
 * process_owner() reports that the process has ended.
 */
bool credentials_parse(const char *status, uint32_t files_uid, struct credentials *ret);

/* Reads the credentials of pid. Returns false if the process has ended or cannot be read. */
bool credentials_read(int32_t pid, struct credentials *ret);

bool credentials_are_equal(const struct credentials *a, const struct credentials *b);

#endif
