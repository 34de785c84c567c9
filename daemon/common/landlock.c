#include "daemon/common/landlock.h"

#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Copied from <linux/landlock.h>, which older kernel headers lack. glibc has no wrappers for these
 * system calls.
 */
struct ruleset_attr {
	uint64_t handled_access_fs;
};

struct path_beneath_attr {
	uint64_t allowed_access;
	int32_t parent_fd;
} __attribute__((packed));

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule	    445
#define SYS_landlock_restrict_self  446
#endif

#define RULE_PATH_BENEATH 1

/* The rights of landlock's first version, Linux 5.13. */
#define WRITE_FILE  (UINT64_C(1) << 1)
#define REMOVE_DIR  (UINT64_C(1) << 4)
#define REMOVE_FILE (UINT64_C(1) << 5)
#define MAKE_CHAR   (UINT64_C(1) << 6)
#define MAKE_DIR    (UINT64_C(1) << 7)
#define MAKE_REG    (UINT64_C(1) << 8)
#define MAKE_SOCK   (UINT64_C(1) << 9)
#define MAKE_FIFO   (UINT64_C(1) << 10)
#define MAKE_BLOCK  (UINT64_C(1) << 11)
#define MAKE_SYM    (UINT64_C(1) << 12)

static int allow_writing_in(int ruleset, int dir)
{
	const struct path_beneath_attr beneath = {
		.allowed_access = WRITE_FILE | MAKE_REG | REMOVE_FILE,
		.parent_fd = dir,
	};

	if (dir < 0)
		return 0;
	return syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &beneath, 0) < 0 ? -errno
											   : 0;
}

/* EPERM comes from a container's seccomp filter, never from the kernel itself. */
static bool is_missing(int error)
{
	return error == ENOSYS || error == EOPNOTSUPP || error == EPERM;
}

int landlock_restrict_writing(int dir)
{
	const struct ruleset_attr all = {
		.handled_access_fs = WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_CHAR | MAKE_DIR |
				     MAKE_REG | MAKE_SOCK | MAKE_FIFO | MAKE_BLOCK | MAKE_SYM,
	};
	int ruleset, r;

	ruleset = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof(all), 0);
	if (ruleset < 0)
		return is_missing(errno) ? 0 : -errno;
	r = allow_writing_in(ruleset, dir);
	if (r == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		r = -errno;
	close_fd(&ruleset);
	return r;
}
