/*
 * Takes the rights of another user on files for a short time, by setfsuid(2) and
 * setfsgid(2). Root opens files that belong to a target's user in this way, so that a path
 * which the user chose leads to no file that the user could not open.
 *
 * Meanwhile the capabilities that bypass permissions (CAP_DAC_*) are not effective.
 */
#ifndef DAEMON_PROCESS_ACT_AS_H
#define DAEMON_PROCESS_ACT_AS_H

#include <stdbool.h>

#include "daemon/common/privileges.h"
#include "daemon/process/owner.h"

/* The state that act_as_restore() restores. */
struct act_as {
	capability_set effective;
	int death_signal; /* cleared by a change of the user: prctl(2), PR_SET_PDEATHSIG */
	bool has_groups;  /* the supplementary groups were set: there were none */
};

/*
 * Takes the rights of a user and a group. Returns 0, and then act_as_restore() with *ret is
 * due, or -errno. -EPERM: this process lacks CAP_SETUID or CAP_SETGID, or its user namespace
 * has no such user. Without capabilities a process can take its own user's rights.
 */
must_check int act_as(uint32_t uid, uint32_t gid, struct act_as *ret);

/*
 * Takes the rights of an owner: the ids that were read, not those that the process has now. If this
 * process has no supplementary groups and may set them, takes those of the owner, too.
 */
must_check int act_as_owner(const struct owner *owner, struct act_as *ret);

/* Restores the rights. Keeps errno. */
void act_as_restore(const struct act_as *before);

/*
 * Opens a file of a process in /proc by open(2), first with this process's own rights, then, if
 * these do not suffice, with those of the owner: most of these files are for their owner only.
 * Returns a descriptor or -errno.
 */
must_check int act_as_open(const struct owner *owner, const char *path, int flags);

#endif
