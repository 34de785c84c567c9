#include "daemon/common/privileges.h"

#include <grp.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* The number of bits of a capability_set. Today's kernels have fewer capabilities. */
#define CAPABILITY_N 64

struct capabilities {
	capability_set effective;
	capability_set permitted;
	capability_set inheritable;
};

/* The capabilities of process pid; 0: of this process. */
static int caps_of(int32_t pid, struct capabilities *ret)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
		.pid = pid,
	};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	ret->effective = data[0].effective | (capability_set)data[1].effective << 32;
	ret->permitted = data[0].permitted | (capability_set)data[1].permitted << 32;
	ret->inheritable = data[0].inheritable | (capability_set)data[1].inheritable << 32;
	return 0;
}

static int caps_get(struct capabilities *ret)
{
	return caps_of(0, ret);
}

static int caps_set(const struct capabilities *caps)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {
		{
			.effective = (uint32_t)caps->effective,
			.permitted = (uint32_t)caps->permitted,
			.inheritable = (uint32_t)caps->inheritable,
		},
		{
			.effective = (uint32_t)(caps->effective >> 32),
			.permitted = (uint32_t)(caps->permitted >> 32),
			.inheritable = (uint32_t)(caps->inheritable >> 32),
		},
	};

	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

/*
 * Limits the permitted set to keep. The effective set becomes the part of effective that is
 * permitted.
 */
static int caps_keep(capability_set keep, capability_set effective)
{
	struct capabilities caps = {0};
	int r;

	r = caps_get(&caps);
	if (r < 0)
		return r;
	caps.permitted &= keep;
	caps.effective = caps.permitted & effective;
	/* This clears the ambient set, too (capabilities(7)). */
	caps.inheritable = 0;
	return caps_set(&caps);
}

/*
 * Limits the bounding set to bound. Without CAP_SETPCAP the set stays as it is, which does no
 * harm: the set limits what execve(2) can give, and with no_new_privs that is nothing.
 */
static int bounding_limit(capability_set bound)
{
	capability_set have = 0;
	int r = privileges_effective(&have);

	if (r < 0 || !(have & CAPABILITY(CAP_SETPCAP)))
		return r;
	for (int cap = 0; cap < CAPABILITY_N; cap++) {
		if (bound & UINT64_C(1) << cap)
			continue;
		switch (prctl(PR_CAPBSET_READ, cap, 0, 0, 0)) {
		case 0:
			continue;
		case 1:
			break;
		default:
			/*
			 * EINVAL: cap is the first number that is not a capability of this kernel.
			 */
			return errno == EINVAL ? 0 : -errno;
		}
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return -errno;
	}
	return 0;
}

static int change_ids(uint32_t uid, uint32_t gid)
{
	if (gid != PRIVILEGES_KEEP_ID) {
		if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0)
			return -errno;
	}
	if (uid != PRIVILEGES_KEEP_ID && setresuid(uid, uid, uid) < 0)
		return -errno;
	return 0;
}

int privileges_drop(uint32_t uid, uint32_t gid, capability_set keep, bool dumpable)
{
	int r;

	r = bounding_limit(0);
	if (r < 0)
		return r;
	/* Without PR_SET_KEEPCAPS a change from uid 0 empties the permitted set (capabilities(7)).
	 */
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		return -errno;
	r = change_ids(uid, gid);
	if (r < 0)
		return r;
	if (prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) < 0)
		return -errno;
	r = caps_keep(keep, keep);
	if (r < 0)
		return r;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	/* This comes last, because each change of ids above resets the flag. */
	if (prctl(PR_SET_DUMPABLE, dumpable, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

int privileges_limit(capability_set keep, capability_set hand_on)
{
	int r;

	r = bounding_limit(keep | hand_on);
	if (r < 0)
		return r;
	r = caps_keep(keep | hand_on, keep);
	if (r < 0)
		return r;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

int privileges_effective(capability_set *ret)
{
	struct capabilities caps = {0};
	int r = caps_get(&caps);

	if (r == 0)
		*ret = caps.effective;
	return r;
}

int privileges_permitted(capability_set *ret)
{
	return privileges_permitted_of(0, ret);
}

int privileges_permitted_of(int32_t pid, capability_set *ret)
{
	struct capabilities caps = {0};
	int r = caps_of(pid, &caps);

	if (r == 0)
		*ret = caps.permitted;
	return r;
}

int privileges_make_effective(capability_set effective)
{
	struct capabilities caps = {0};
	int r;

	r = caps_get(&caps);
	if (r < 0)
		return r;
	caps.effective = caps.permitted & effective;
	return caps_set(&caps);
}

capability_set privileges_for_reading(capability_set have)
{
	if (have & CAPABILITY(CAP_DAC_READ_SEARCH))
		return CAPABILITY(CAP_DAC_READ_SEARCH);
	return have & CAPABILITY(CAP_DAC_OVERRIDE);
}

void privileges_raise_descriptor_limit(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
}
