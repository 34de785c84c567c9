/*
 * Giving up power for good: user ids, capabilities, what exec could bring
 * back. libc only, so that the processes that must not link more can use it.
 *
 * A child is started by the broker as root with the broker's bounding set and
 * calls privileges_drop before it reads the first byte that is not the
 * broker's.
 */
#ifndef DAEMON_COMMON_PRIVILEGES_H
#define DAEMON_COMMON_PRIVILEGES_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

/* A set of capabilities: bit n is capability n of <linux/capability.h>. */
typedef uint64_t capability_set;
#define CAPABILITY(name) (UINT64_C(1) << (name))

/* In place of a user id or a group id: the process keeps the one that it has. */
#define PRIVILEGES_KEEP_ID UINT32_MAX

/*
 * Becomes uid and gid without supplementary groups (PRIVILEGES_KEEP_ID: stays),
 * keeps of its capabilities those in keep, drops the others and the whole
 * bounding set, sets no_new_privs and, with dumpable false, forbids core files
 * and being traced by its own user. Returns 0 or -errno; after an error the
 * process must exit.
 */
must_check int privileges_drop(uint32_t uid, uint32_t gid, capability_set keep, bool dumpable);

/*
 * For the broker, as root: keeps of its capabilities those in keep, and sets
 * no_new_privs. Those in hand_on it keeps permitted, not effective: with
 * no_new_privs root's exec gives a child no more than its parent was permitted
 * (capabilities(7); handle_privileged_root() in security/commoncap.c). The
 * bounding set is that of both, where CAP_SETPCAP allows to change it. Returns 0 or -errno; after
 * an error the process must exit.
 */
must_check int privileges_limit(capability_set keep, capability_set hand_on);

/* The effective capabilities of this process. */
must_check int privileges_get(capability_set *ret);
/* Those that it may make effective, or hand on. */
must_check int privileges_permitted(capability_set *ret);
/* Those of process pid, in its user namespace. */
must_check int privileges_of(int32_t pid, capability_set *ret);

/* Of its permitted ones makes these effective, and no others. 0 or -errno. */
must_check int privileges_make_effective(capability_set effective);

/*
 * Of a set, the one capability by which files are read whose permissions do not
 * allow it: CAP_DAC_READ_SEARCH, or, where that is missing, CAP_DAC_OVERRIDE,
 * which contains it: containers give that one by default. Empty: neither is.
 */
capability_set privileges_to_read(capability_set have);

/* As many descriptors as the hard limit permits. */
void privileges_all_files(void);

#endif
