/*
 * The directory of the spool, in which ship keeps chunks that no server has taken yet. ship has no
 * right to make the directory, so the broker makes, locks and opens it for ship.
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
 * Checks whether spool_dir_open() would succeed for path and uid (PRIVILEGES_KEEP_ID as there).
 * Changes nothing, so it cannot find every fault. Returns 0, or -errno with a text of the reason in
 * what, such as "Permission denied".
 */
#define SPOOL_DIR_FAULT_MAX 512
must_check int spool_dir_check(const char *path, uint32_t uid, char what[SPOOL_DIR_FAULT_MAX]);

/*
 * Opens the directory path; makes it, and its parent directory, if they do not exist. The directory
 * then belongs to uid and gid, and has mode 0700. PRIVILEGES_KEEP_ID as uid stands for the
 * effective user of this process, and as gid for the present group of the directory.
 *
 * If the directory belongs neither to uid nor to the effective user of this process, its owner
 * counts as a former account of ship: *ret_former is this owner, and spool_owner_change() gives the
 * directory and its files to uid and gid. Otherwise *ret_former is uid (for PRIVILEGES_KEEP_ID the
 * effective user). By *ret_former the caller sees a change, which it logs.
 *
 * The caller closes *ret_fd. The descriptor and its copies hold a lock, since only one daemon can
 * use a spool. Returns 0; -EPERM if spool_owner_change() refuses the change (conditions in
 * spool_owner.h); -EWOULDBLOCK if another daemon has locked the directory; or another -errno.
 */
must_check int spool_dir_open(const char *path, uint32_t uid, uint32_t gid, int *ret_fd,
			      uint32_t *ret_former);

#endif
