/*
 * Gives this process the rights of another user on files for a short time, by setfsuid(2) and
 * setfsgid(2). The daemon, as root, opens files of a target in this way: the target's user may have
 * chosen the path, and must not gain access to a file that this user cannot open.
 *
 * While a process of root has the rights of another user, its capabilities that bypass permissions
 * of files (CAP_DAC_* and others) are not effective, until act_as_restore(). If the new uid is not
 * 0, the kernel makes them ineffective. For an owner with uid 0 that is not OWNER_ROOT, such as
 * root of a user namespace, act_as_owner() makes them ineffective.
 */
#ifndef DAEMON_PROCESS_ACT_AS_H
#define DAEMON_PROCESS_ACT_AS_H

#include <stdbool.h>

#include "daemon/common/privileges.h"
#include "daemon/process/owner.h"

/* The state that act_as_restore() restores. */
struct act_as {
	capability_set effective; /* the effective capabilities */
	int death_signal; /* of prctl(2), PR_SET_PDEATHSIG; a change of the user clears it */
	bool has_groups;  /* act_as_owner() has set groups; before there were none */
};

/*
 * Takes the rights of a user and a group. Returns 0, and the caller calls act_as_restore(ret)
 * later. Returns -EPERM if this process lacks CAP_SETUID or CAP_SETGID, or its user namespace has
 * no such user; or another -errno. After an error the rights are as before. A process needs no
 * capability to take the rights that it has already.
 */
must_check int act_as(uint32_t uid, uint32_t gid, struct act_as *ret);

/*
 * Takes the rights of an owner, by the ids in *owner, which the caller has read before: the owner's
 * process may have other ids now. If this process has no supplementary groups and may set them,
 * takes those of the owner, too. Returns what act_as() returns.
 */
must_check int act_as_owner(const struct owner *owner, struct act_as *ret);

/* Restores the rights. Keeps errno. */
void act_as_restore(const struct act_as *before);

/*
 * Opens a file of a process in /proc by open(2), first with the rights of this process. If that
 * fails with EACCES, opens the file with the rights of the owner, because most of these files are
 * for their owner only. Returns a descriptor, which the caller owns, or -errno.
 */
must_check int act_as_open(const struct owner *owner, const char *path, int flags);

#endif
