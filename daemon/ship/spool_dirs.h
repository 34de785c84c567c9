/*
 * The spool's directories, one for each DSN. ship calls this module once at its start and then
 * at each turn of its loop.
 *
 * The first DSN, that of [sentry] or of the command line, uses the spool's own directory; each
 * other DSN uses a subdirectory, whose name is the DSN's hash (dsn_hash) in 16 hexadecimal
 * digits. A DSN that changes its role from one run to the next has chunks in the other directory:
 * they are moved at the start.
 *
 * The ship of the first DSN also removes files from all subdirectories that are too old, because
 * a DSN that is no longer configured has no ship, and removes empty subdirectories at its start.
 *
 * Errors are logged.
 */
#ifndef DAEMON_SHIP_SPOOL_DIRS_H
#define DAEMON_SHIP_SPOOL_DIRS_H

#include "daemon/msg/msg.h"
#include "lib/base/util.h"

/* Time between two checks of the subdirectories for files that are too old. */
#define SPOOL_DIRS_PAUSE_NS (3600 * NS_PER_SEC)

/* The checks of the subdirectories. */
struct spool_dirs {
	int dir_fd; /* the spool's directory; -1: another ship makes the checks */
	uint64_t age_ms;
	uint64_t next_ns; /* time of the next check, by clock_boot_ns() */
};

/*
 * Opens the directory of init->spool_dsn, makes it if needed, and moves the DSN's files from the
 * other directory to it. Takes dir_fd, the spool's directory, which may be -1. Returns the
 * descriptor, for the life of the process, or -1 if there is no spool.
 *
 * Call it before the sandbox: landlock does not permit renames between directories. The ship that
 * used the other directory before notices the moves within a minute (spool_forget_moved).
 */
int spool_dirs_open(int dir_fd, const struct msg_init *init, struct spool_dirs *ret);

/* Removes files that are too old if a check is due. Works inside the sandbox. */
void spool_dirs_check(struct spool_dirs *d);

#endif
