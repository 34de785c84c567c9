/*
 * The users that the child processes become when the daemon was started by
 * root: looked up in /etc/passwd, without the name service, whose libraries
 * have no business in a process of root.
 */
#ifndef DAEMON_ACCOUNTS_H
#define DAEMON_ACCOUNTS_H

#include <stdint.h>

enum account {
	ACCOUNT_CAPTURE,
	ACCOUNT_UNWIND,
	ACCOUNT_SHIP,
};

/*
 * The ids of the account. Where it does not exist (the daemon was built and
 * not installed), a number of its own out of a range that no account has.
 */
void account_ids(enum account account, uint32_t *ret_uid, uint32_t *ret_gid);

#endif
