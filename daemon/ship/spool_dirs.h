/*
 * The directories of the spool (lib/ship/spool.h), one for each DSN. At its start ship opens the
 * directory of its DSN. At each turn of its loop it calls spool_dirs_check().
 *
 * The first DSN is that of the section [sentry] or of the command line. It uses the spool's own
 * directory. Each other DSN uses a subdirectory, whose name is the DSN's hash (dsn_hash) in 16
 * hexadecimal digits. If a DSN was the first one in an earlier run and is not now, or the reverse,
 * its files are in the wrong directory. ship moves them at its start.
 *
 * The ship of the first DSN also removes files that are too old from all subdirectories, because a
 * DSN that is no longer configured has no ship. At its start this ship removes empty subdirectories
 * that no ship uses. A ship that uses a subdirectory keeps a shared flock(2) on it.
 */
#ifndef DAEMON_SHIP_SPOOL_DIRS_H
#define DAEMON_SHIP_SPOOL_DIRS_H

#include "daemon/msg/msg.h"
#include "lib/base/util.h"

/* Time between two checks of the subdirectories for files that are too old. */
#define SPOOL_DIRS_PAUSE_NS (3600 * NS_PER_SEC)

/* State of the checks of the subdirectories. */
struct spool_dirs {
	int dir_fd;	  /* the spool's directory; -1: this ship makes no checks */
	uint64_t age_ms;  /* an older file is removed: one hour above the spool's limit of age */
	uint64_t next_ns; /* time of the next check, by clock_boot_ns() */
};

/*
 * Opens the directory of the DSN init->spool_dsn, makes it if needed, and moves the DSN's files to
 * it. dir_fd is the spool's directory; -1: there is no spool. The function owns dir_fd from now on.
 * Returns the directory's descriptor, which stays open for the life of the process; or -1 if dir_fd
 * is -1, or after an error, which is logged. *ret is set in each case.
 *
 * Call it before the sandbox: landlock does not permit renames between directories. Another ship
 * may use the directory that the files leave. That ship removes the moved files from its list
 * within a minute (spool_forget_moved()).
 */
int spool_dirs_open(int dir_fd, const struct msg_init *init, struct spool_dirs *ret);

/*
 * Removes files that are older than d->age_ms from all subdirectories, if SPOOL_DIRS_PAUSE_NS has
 * passed since the last check. A ship that uses a subdirectory has removed and counted these files
 * an hour before. Works inside the sandbox. Errors are ignored.
 */
void spool_dirs_check(struct spool_dirs *d);

#endif
