/*
 * Parses the user and group ids of a process in the text of /proc/PID/status
 * (proc_pid_status(5)). The kernel shows the ids as they are in the reader's user namespace.
 */
#ifndef DAEMON_PROCESS_IDS_H
#define DAEMON_PROCESS_IDS_H

#include <stdbool.h>
#include <stdint.h>

/* The index of each id in struct ids; the order is that of the lines Uid and Gid. */
enum { IDS_REAL, IDS_EFFECTIVE, IDS_SAVED, IDS_FILE_SYSTEM, IDS_N };

struct ids {
	uint32_t uid[IDS_N], gid[IDS_N];
};

/* Parses the lines Uid and Gid. Returns false if a line or an id is missing. */
bool ids_parse(const char *status, struct ids *ret);

/*
 * The most supplementary groups that are stored. Leaving out the others is safe: the daemon takes
 * the stored groups to open files (act_as_owner()), and without the others it can open fewer.
 */
#define IDS_GROUPS_MAX 32

/*
 * Parses the line Groups. Writes the first supplementary groups to ret, at most IDS_GROUPS_MAX, and
 * their number to *ret_n. Writes a hash of all groups to *ret_hash, also of those that are left
 * out. Returns false if the line is missing or incomplete.
 */
bool ids_parse_groups(const char *status, uint32_t ret[IDS_GROUPS_MAX], uint32_t *ret_n,
		      uint64_t *ret_hash);

#endif
