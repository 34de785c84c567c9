/*
 * The credentials of a process, as /proc shows them: by these the kernel decides what the process
 * may do, and who may trace it.
 */
#ifndef DAEMON_PROCESS_CREDENTIALS_H
#define DAEMON_PROCESS_CREDENTIALS_H

#include <stdbool.h>
#include <stdint.h>

/* The four ids in a line Uid or Gid of /proc/PID/status. */
enum { CREDENTIALS_REAL, CREDENTIALS_EFFECTIVE, CREDENTIALS_SAVED, CREDENTIALS_OF_FILES };

/* Ids are those in the daemon's user namespace. */
struct credentials {
	uint64_t uid[4], gid[4];
	uint64_t permitted; /* capabilities, in the process's user namespace */
	uint64_t owner;	    /* process_owner() */
};

/*
 * Parses the text of /proc/PID/status; owner: process_owner(). Returns false if a line is missing,
 * or the owner is UINT32_MAX.
 */
bool credentials_parse(const char *status, uint32_t owner, struct credentials *ret);

/* Reads the credentials of pid. Returns false if the process has ended. */
bool credentials_read(int32_t pid, struct credentials *ret);

bool credentials_are_equal(const struct credentials *a, const struct credentials *b);

#endif
