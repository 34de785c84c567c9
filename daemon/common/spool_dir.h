/*
 * The directory of the spool. The broker makes and locks it, since ship has no right to
 * do that, and hands the descriptor to ship.
 */
#ifndef DAEMON_COMMON_SPOOL_DIR_H
#define DAEMON_COMMON_SPOOL_DIR_H

#include <stdint.h>

#include "lib/base/util.h"

#define SPOOL_DIR_DEFAULT "/var/lib/sentry-profd/spool"

/* The default limits: size in bytes, number of files, and age in seconds (one day). */
#define SPOOL_BYTES_DEFAULT (UINT64_C(256) << 20)
#define SPOOL_COUNT_DEFAULT (1u << 14)
#define SPOOL_AGE_DEFAULT_S UINT64_C(86400)

/*
 * Checks whether spool_dir_open() would succeed for path and uid. Changes nothing, so it cannot
 * find every fault. Returns 0, or -errno with the reason in what, as in "Permission denied".
 */
#define SPOOL_DIR_FAULT_MAX 512
must_check int spool_dir_check(const char *path, uint32_t uid, char what[SPOOL_DIR_FAULT_MAX]);

/*
 * Opens the directory path; makes it, and its parent directory, if they do not exist. The
 * directory gets the owner uid and gid (PRIVILEGES_KEEP_ID: no change) and mode 0700; so do the
 * files of one that belongs to another user, if spool_owner.h permits. *ret_former: the owner so
 * far, if the directory was taken over from another user; else the present one. The caller closes
 * *ret_fd. The descriptor and its copies hold a lock, since only one daemon can use a spool.
 * Returns 0 or -errno: -EPERM if the directory exists, belongs neither to uid nor to the effective
 * user of this process, and may not be taken over; -EWOULDBLOCK if another daemon has locked it.
 */
must_check int spool_dir_open(const char *path, uint32_t uid, uint32_t gid, int *ret_fd,
			      uint32_t *ret_former);

#endif
