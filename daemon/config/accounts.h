/*
 * The accounts that the child processes change to if root has started the daemon. They are
 * looked up in /etc/passwd, not by the name service, whose libraries should not run as root.
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

/* Looks up a name in /etc/passwd. Returns false if there is no entry. */
bool account_find(const char *name, uint32_t *ret_uid, uint32_t *ret_gid);

/*
 * The user and group of an account. If the account does not exist, as with a daemon that was
 * not installed, a fixed number that no other account has.
 *
 * PRIVILEGES_KEEP_ID: the process cannot change to it. The user namespace of a rootless
 * container can lack the id, and the root of a container CAP_SETUID or CAP_SETGID. Capture
 * also stays root if no capability permits it to read other users' files.
 */
void account_ids(enum account account, uint32_t *ret_uid, uint32_t *ret_gid);

#endif
