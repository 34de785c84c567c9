/*
 * Gives a spool that belongs to a former account of ship to the present one. The number of the
 * account changes when a container's image is built anew and the spool is in a volume.
 *
 * Root does that only where no other program can lose a file by it, and no user gain one:
 * - only root can write to the parent directory, so root has put the spool there;
 * - nobody but the former account had any right on the directory (mode 0700);
 * - each name in it, and in its subdirectories for further DSNs, is one that lib/ship/spool.h
 *   gives, and there is at least one. The default directory may be empty: its path says whose
 *   it is;
 * - each file is a regular file with one link, of root, the former or the present account.
 * Links are not followed, and each file is changed through the descriptor that was checked.
 */
#ifndef DAEMON_COMMON_SPOOL_OWNER_H
#define DAEMON_COMMON_SPOOL_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

/*
 * Returns 0 if this process is root and may take over the directory; -EPERM, or an error of reading
 * it. dir_fd may be an O_PATH descriptor.
 */
must_check int spool_owner_check(int dir_fd, bool may_be_empty, uint32_t uid);

/*
 * Gives the directory and its files to uid and gid, after the same checks: the directory last, so
 * that a take-over that was interrupted begins anew. Returns 0 or -errno.
 */
must_check int spool_owner_change(int dir_fd, bool may_be_empty, uint32_t uid, uint32_t gid);

#endif
