/*
 * The user and group ids of a process, from the text of /proc/PID/status (proc_pid_status(5)). The
 * kernel shows them as ids of the reader's user namespace.
 */
#ifndef DAEMON_PROCESS_IDS_H
#define DAEMON_PROCESS_IDS_H

#include <stdbool.h>
#include <stdint.h>

/* The ids in a line Uid or Gid, in their order. */
enum { IDS_REAL, IDS_EFFECTIVE, IDS_SAVED, IDS_FILE_SYSTEM, IDS_N };

struct ids {
	uint32_t uid[IDS_N], gid[IDS_N];
};

/* Parses the lines Uid and Gid. Returns false if a line is missing, or an id. */
bool ids_parse(const char *status, struct ids *ret);

/* Of a process with more supplementary groups the first ones: fewer groups open fewer files. */
#define IDS_GROUPS_MAX 32

/*
 * Parses the line Groups: *ret_n groups, and in *ret_hash a hash of all groups, without a key.
 * Returns false if the line is missing, or the text ends within it.
 */
bool ids_parse_groups(const char *status, uint32_t ret[IDS_GROUPS_MAX], uint32_t *ret_n,
		      uint64_t *ret_hash);

#endif
