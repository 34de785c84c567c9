/*
 * The accounts that the child processes change to if root has started the daemon:
 * sentry-profd-capture, sentry-profd-unwind and sentry-profd-ship. The broker sends their ids to
 * each child that it starts. They are looked up in /etc/passwd, not by the name service, whose
 * libraries should not run as root.
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

/* Looks up a name in /etc/passwd. Returns false if there is no entry, or no such file. */
bool account_find(const char *name, uint32_t *ret_uid, uint32_t *ret_gid);

/*
 * Finds the user and group of an account. If /etc/passwd lacks the account, because the daemon was
 * not installed, or gives it uid 0, both ids are a fixed number: 65521 for capture, 65522 for
 * unwind, 65523 for ship. Debian reserves these numbers, and systemd gives them to no dynamic user.
 *
 * An id to which this process cannot change is replaced by PRIVILEGES_KEEP_ID (privileges.h): the
 * user namespace of a rootless container can lack the id, and root in a container can lack
 * CAP_SETUID or CAP_SETGID. For ACCOUNT_CAPTURE both ids are PRIVILEGES_KEEP_ID if this process has
 * no capability to read every file: capture then has to stay root.
 */
void account_ids(enum account account, uint32_t *ret_uid, uint32_t *ret_gid);

#endif
