/*
 * Finds the user who owns a uid: the owner of the range of subordinate uids (subuid(5)) that
 * contains the uid, or the uid itself. A user of rootless containers has 65,536 uids, and can
 * connect to the daemon's socket as each; limits per user (daemon/broker/control/user_quota.h)
 * count these uids as one user.
 *
 * The uids in a range of a system account (a uid below UID_MIN of login.defs(5), such as root's for
 * LXC) have no common owner: each counts as itself, since the administrator's containers have
 * nothing to do with each other. The same holds for a range of the name "containers", which podman
 * uses for root's containers, if no account has this name.
 *
 * This module looks accounts up in /etc/passwd, not by the name service (accounts.h). libsubid,
 * which has the same function, would load the modules of subid: in nsswitch.conf(5) into root's
 * process. So subordinate uids that only such a module knows count as themselves.
 */
#ifndef DAEMON_CONFIG_SUBUID_H
#define DAEMON_CONFIG_SUBUID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/file_identity.h"

#define SUBUID_FILE	  "/etc/subuid"
#define SUBUID_LOGIN_DEFS "/etc/login.defs"

/* The size of a name, with the NUL. Longer names than useradd(8) accepts are cut off. */
#define SUBUID_NAME_MAX 33
/* The most ranges: 65,536 ranges of 65,536 uids, as useradd(8) makes them, contain all uids. */
#define SUBUID_RANGES_MAX 65536

struct subuid_range {
	char name[SUBUID_NAME_MAX]; /* of the owner, or its uid in decimal */
	bool is_resolved;	    /* the next two members are set */
	bool is_system;		    /* the owner is a system account */
	uint32_t owner;
	uint32_t first, n; /* the first uid of the range, and the number of its uids */
};

/* The ranges of a file. subuid_owner() reads the file at the first call and after a change. */
struct subuid {
	const char *path, *login_defs; /* the files, as given to subuid_init() */
	struct file_identity seen;     /* of the file that was read; zeros: there was no file */
	uint32_t uid_min;	       /* UID_MIN of login_defs */
	struct subuid_range *ranges;
	size_t n, size;
};

/* Initialises *s, without reading. path and login_defs, usually the two above, must outlive *s. */
void subuid_init(struct subuid *s, const char *path, const char *login_defs);
/* Frees the ranges. */
void subuid_fini(struct subuid *s);

/*
 * Returns the uid of the user who owns uid; uid itself if no range contains it. If the file gives a
 * range to a name that is neither in /etc/passwd nor a number, the first uid of the first range of
 * that name stands for the owner. If memory is short, or the file has more than SUBUID_RANGES_MAX
 * ranges, logs a line, and the uids of the ranges that do not fit count as themselves.
 */
uint32_t subuid_owner(struct subuid *s, uint32_t uid);

#endif
