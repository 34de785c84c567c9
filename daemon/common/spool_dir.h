/*
 * The directory of the spool: made and locked by the broker, which has the
 * rights to, for ship, which has not.
 */
#ifndef DAEMON_COMMON_SPOOL_DIR_H
#define DAEMON_COMMON_SPOOL_DIR_H

#include <stdint.h>

#include "lib/base/util.h"

#define SPOOL_DIR_DEFAULT "/var/lib/sentry-profd/spool"

/* Some hours of a dozen targets, compressed; or some days of one. */
#define SPOOL_BYTES_DEFAULT (UINT64_C(256) << 20)
#define SPOOL_COUNT_DEFAULT (1u << 14)
#define SPOOL_AGE_DEFAULT_S UINT64_C(86400)

/*
 * Could uid's spool be opened there? Changes nothing, so it cannot know all.
 * Returns 0, or -errno, then what says why not.
 */
#define SPOOL_DIR_FAULT_MAX 512
must_check int spool_dir_check(const char *path, uint32_t uid, char what[SPOOL_DIR_FAULT_MAX]);

/*
 * Opens path, or makes it first and what it is in. In the end it is uid's and
 * gid's (PRIVILEGES_KEEP_ID: whose it is), and nobody else can look into it. The
 * descriptor holds a lock: one daemon for a spool. Returns 0 or -errno: -EPERM
 * if it is somebody else's, -EWOULDBLOCK if another daemon has it.
 */
must_check int spool_dir_open(const char *path, uint32_t uid, uint32_t gid, int *ret_fd);

#endif
