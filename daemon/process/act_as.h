/*
 * The rights of another user on files, for a moment: setfsuid(2), setfsgid(2).
 * Root opens with them what belongs to that user, so that a path which the user
 * chose leads to nothing that the user could not open. While they last, root's
 * capabilities that pass over permissions (CAP_DAC_*) are not effective.
 *
 * The supplementary groups are not changed: a process that opens files for
 * targets has none (daemon/broker/files/files.c).
 */
#ifndef DAEMON_PROCESS_ACT_AS_H
#define DAEMON_PROCESS_ACT_AS_H

#include "daemon/common/privileges.h"

struct act_as {
	capability_set effective; /* before */
	int death_signal;	  /* which a change of user clears: prctl(2) */
};

/*
 * Takes the user's rights. act_as_self, with the same *ret, is due after 0
 * only. Returns 0 or -errno: -EPERM where this process cannot become the user,
 * for want of CAP_SETUID or CAP_SETGID, or because its user namespace has no
 * such user. An ordinary user may have his own rights.
 */
must_check int act_as(uint32_t uid, uint32_t gid, struct act_as *ret);

/* The same with the effective user and group of a process. */
must_check int act_as_process(int32_t pid, struct act_as *ret);

/* Gives them back. errno stays. */
void act_as_self(const struct act_as *before);

/*
 * open(2) of a file of process pid in /proc, with this process's own rights or,
 * where these are not enough, with those of the process's user: most of these
 * files are for their owner only. Returns a descriptor or -errno.
 */
must_check int act_as_open(int32_t pid, const char *path, int flags);

#endif
