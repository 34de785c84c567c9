/*
 * The users that the child processes become when the daemon was started by
 * root: looked up in /etc/passwd, without the name service, whose libraries
 * have no business in a process of root.
 */
#ifndef DAEMON_CONFIG_ACCOUNTS_H
#define DAEMON_CONFIG_ACCOUNTS_H

#include <stdbool.h>
#include <stdint.h>

enum account {
	ACCOUNT_CAPTURE,
	ACCOUNT_UNWIND,
	ACCOUNT_SHIP,
};

/* The ids of a name in /etc/passwd. False: it is not there. */
bool account_find(const char *name, uint32_t *ret_uid, uint32_t *ret_gid);

/*
 * The ids of the account. Where it does not exist (the daemon was built and
 * not installed), a number of its own out of a range that no account has.
 * PRIVILEGES_KEEP_ID is one that nobody can become here: a rootless container's user
 * namespace may have no user but its root, and a container's root may be
 * without CAP_SETUID or CAP_SETGID. Capture stays root where it has no
 * capability to read other users' files: so it has root's.
 */
void account_ids(enum account account, uint32_t *ret_uid, uint32_t *ret_gid);

#endif
