/*
 * Drops privileges permanently: user and group, capabilities, and the privileges that execve(2)
 * could give back. Also reads capabilities, and changes which of them are effective. Uses libc
 * only, so that every process can link it.
 *
 * The broker starts a child with the broker's own user, which is root in a service. The child calls
 * privileges_drop() before it reads the first byte that does not come from the broker.
 */
#ifndef DAEMON_COMMON_PRIVILEGES_H
#define DAEMON_COMMON_PRIVILEGES_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

/* A set of capabilities: bit n is capability n of <linux/capability.h>. */
typedef uint64_t capability_set;
#define CAPABILITY(name) (UINT64_C(1) << (name))

/* As a uid or gid argument: the process keeps its user or group. */
#define PRIVILEGES_KEEP_ID UINT32_MAX

/*
 * Drops privileges in these steps. Returns 0 or -errno; after an error the process must exit.
 * - Empties the bounding set, if the process has CAP_SETPCAP.
 * - Changes to gid, without supplementary groups, and to uid. PRIVILEGES_KEEP_ID: no change.
 * - Drops the capabilities that are not in keep. Those that are in keep become effective.
 * - Sets no_new_privs, and the flag dumpable (PR_SET_DUMPABLE). If dumpable is false, the process
 *   writes no core file, and no other process of the same user can trace it.
 */
must_check int privileges_drop(uint32_t uid, uint32_t gid, capability_set keep, bool dumpable);

/*
 * For the broker, as root: limits the capabilities, and sets no_new_privs. A capability that the
 * process has is then:
 *
 *     in keep            permitted and effective
 *     in hand_on only    permitted, for the children: with no_new_privs a child of root gets by
 *                        execve(2) only capabilities that its parent was permitted
 *                        (capabilities(7); handle_privileged_root() in security/commoncap.c)
 *     in neither         dropped
 *
 * The bounding set becomes the union of keep and hand_on; without CAP_SETPCAP it stays as it is.
 * Returns 0 or -errno; after an error the process must exit.
 */
must_check int privileges_limit(capability_set keep, capability_set hand_on);

/* Reads the effective capabilities of this process. Returns 0 or -errno. */
must_check int privileges_effective(capability_set *ret);
/*
 * Reads the permitted capabilities of this process, which it can make effective or hand on. Returns
 * 0 or -errno.
 */
must_check int privileges_permitted(capability_set *ret);
/*
 * Reads the permitted capabilities of process pid, as they count in its user namespace. Returns 0
 * or -errno.
 */
must_check int privileges_permitted_of(int32_t pid, capability_set *ret);

/*
 * Makes the capabilities effective that are permitted and in this set, and no others. The permitted
 * ones stay permitted, so another call can make them effective again. Returns 0 or -errno.
 */
must_check int privileges_make_effective(capability_set effective);

/*
 * Returns the set of the one capability in have that permits reading every file:
 * CAP_DAC_READ_SEARCH, or, if that is missing, CAP_DAC_OVERRIDE, which permits it as well and which
 * containers have by default. Returns an empty set if have has neither.
 */
capability_set privileges_for_reading(capability_set have);

/* Raises the soft limit of open descriptors to the hard limit. An error is ignored. */
void privileges_raise_descriptor_limit(void);

#endif
