/*
 * Gives a spool directory (spool_dir.h) that belongs to a former account of ship to the present
 * one. The account's number can change when a container's image is built again, while the spool is
 * in a volume.
 *
 * Only root can do so. The following conditions must hold, so that no other program can lose a
 * file, and no user can gain one:
 * - only root can write to the parent directory, so root has put the spool there;
 * - nobody but the former account had any right on the directory (mode 0700);
 * - each name in the directory, and in its subdirectories for further DSNs, is one that ship gives
 *   (lib/ship/spool.h);
 * - there is at least one name, except in the default directory, which may be empty;
 * - each file is a regular file with one link, of root, the former or the present account.
 * Links are not followed, and each file is changed through the descriptor that was checked.
 */
#ifndef DAEMON_COMMON_SPOOL_OWNER_H
#define DAEMON_COMMON_SPOOL_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

/*
 * Returns 0 if these conditions hold; -EPERM if this process is not root or a condition does not
 * hold; or another -errno if the directory cannot be read. dir_fd: the directory, also an O_PATH
 * descriptor; may_be_empty: true for the default directory; uid: the present account.
 */
must_check int spool_owner_check(int dir_fd, bool may_be_empty, uint32_t uid);

/*
 * Gives the directory and its files to uid and gid, after the same checks. The owner of the
 * directory changes last: if this process ends before that, the next call repeats all steps.
 * Returns what spool_owner_check() returns, or an error of fchownat(2).
 */
must_check int spool_owner_change(int dir_fd, bool may_be_empty, uint32_t uid, uint32_t gid);

#endif
