#include "daemon/process/act_as.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <unistd.h>

/* The capabilities that setfsuid(2) drops for a user (cap_task_fix_setuid()). */
#define BYPASS_PERMISSIONS                                                                        \
	(CAPABILITY(CAP_CHOWN) | CAPABILITY(CAP_DAC_OVERRIDE) | CAPABILITY(CAP_DAC_READ_SEARCH) | \
	 CAPABILITY(CAP_FOWNER) | CAPABILITY(CAP_FSETID) | CAPABILITY(CAP_LINUX_IMMUTABLE) |      \
	 CAPABILITY(CAP_MKNOD) | CAPABILITY(CAP_MAC_OVERRIDE))

/*
 * setfsuid(2) and setfsgid(2) return the former id and no error. The id -1 is never valid,
 * so it changes nothing.
 */
static bool has_ids(uint32_t uid, uint32_t gid)
{
	return (uint32_t)setfsuid((uid_t)-1) == uid && (uint32_t)setfsgid((gid_t)-1) == gid;
}

static void set_ids(uint32_t uid, uint32_t gid, const struct act_as *before)
{
	/* The group first: after the change of user the capability to change it can be gone. */
	(void)setfsgid(gid);
	(void)setfsuid(uid);
	(void)prctl(PR_SET_PDEATHSIG, before->death_signal, 0, 0, 0);
}

int act_as(uint32_t uid, uint32_t gid, struct act_as *ret)
{
	struct act_as before = {.has_groups = false};
	int r = privileges_effective(&before.effective);

	if (r < 0)
		return r;
	if (prctl(PR_GET_PDEATHSIG, &before.death_signal, 0, 0, 0) < 0)
		return -errno;
	set_ids(uid, gid, &before);
	if (has_ids(uid, gid)) {
		*ret = before;
		return 0;
	}
	act_as_restore(&before);
	return -EPERM;
}

int act_as_owner(const struct owner *owner, struct act_as *ret)
{
	const bool has_groups = owner->n_groups > 0 && getgroups(0, NULL) == 0 &&
				setgroups(owner->n_groups, owner->groups) == 0;
	int r = act_as(owner->uid, owner->gid, ret);

	if (r == 0) {
		ret->has_groups = has_groups;
		/* uid 0 of a user namespace has no capability here, and setfsuid(0) drops none. */
		if (owner->kind != OWNER_ROOT && owner->uid == 0)
			r = privileges_make_effective(ret->effective & ~BYPASS_PERMISSIONS);
		if (r < 0)
			act_as_restore(ret);
	} else if (has_groups) {
		(void)!setgroups(0, NULL);
	}
	return r;
}

/*
 * When the fsuid becomes 0 again, the kernel makes all permitted capabilities that bypass
 * permissions effective (cap_task_fix_setuid() in security/commoncap.c). The broker keeps some
 * of these permitted only, to hand them on, so the former effective set is restored.
 */
void act_as_restore(const struct act_as *before)
{
	const int saved = errno;

	set_ids(geteuid(), getegid(), before);
	(void)!privileges_make_effective(before->effective);
	if (before->has_groups)
		(void)!setgroups(0, NULL);
	errno = saved;
}

int act_as_open(const struct owner *owner, const char *path, int flags)
{
	int fd = open(path, flags);
	struct act_as before = {0};

	if (fd >= 0)
		return fd;
	if (errno != EACCES || act_as_owner(owner, &before) < 0)
		return -errno;
	fd = open(path, flags);
	act_as_restore(&before);
	/* cppcheck-suppress resourceLeak ; the caller closes it */
	return fd < 0 ? -errno : fd;
}
