#include "daemon/config/accounts.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "daemon/common/privileges.h"
#include "lib/base/small_file.h"

/*
 * The numbers for missing accounts: Debian reserves 65000 to 65533, and systemd's dynamic
 * users end at 65519.
 */
static const struct {
	const char *name;
	uint32_t id;
} accounts[] = {
	[ACCOUNT_CAPTURE] = {"sentry-profd-capture", 65521},
	[ACCOUNT_UNWIND] = {"sentry-profd-unwind", 65522},
	[ACCOUNT_SHIP] = {"sentry-profd-ship", 65523},
};

/*
 * Returns true if this user namespace has the id. Each line of a map has a range: its first id
 * inside, its first id outside, and its length (user_namespaces(7)).
 */
static bool is_mapped(const char *map, uint32_t id)
{
	FILE *file = fopen(map, "re");
	unsigned int first, outside, n;
	bool found = false;

	/* The file is missing if the kernel has no user namespaces. */
	if (file == NULL)
		return errno == ENOENT;
	while (!found && fscanf(file, "%u %u %u", &first, &outside, &n) == 3)
		found = id >= first && id - first < n;
	(void)fclose(file);
	return found;
}

/* True in a namespace that an unprivileged user made. */
static bool setgroups_is_denied(void)
{
	char word[16];

	return small_file_read(AT_FDCWD, "/proc/self/setgroups", word, sizeof(word)) == 0 &&
	       strncmp(word, "deny", 4) == 0;
}

static void keep_unchangeable_ids(uint32_t *uid, uint32_t *gid)
{
	capability_set own;

	if (privileges_effective(&own) < 0)
		return;
	if (!(own & CAPABILITY(CAP_SETUID)) || !is_mapped("/proc/self/uid_map", *uid))
		*uid = PRIVILEGES_KEEP_ID;
	if (!(own & CAPABILITY(CAP_SETGID)) || setgroups_is_denied() ||
	    !is_mapped("/proc/self/gid_map", *gid))
		*gid = PRIVILEGES_KEEP_ID;
}

bool account_find(const char *name, uint32_t *ret_uid, uint32_t *ret_gid)
{
	FILE *file = fopen("/etc/passwd", "re");
	struct passwd *entry = NULL;

	if (file == NULL)
		return false;
	while ((entry = fgetpwent(file)) != NULL && strcmp(entry->pw_name, name) != 0)
		continue;
	if (entry != NULL) {
		*ret_uid = entry->pw_uid;
		*ret_gid = entry->pw_gid;
	}
	(void)fclose(file);
	return entry != NULL;
}

static void look_up(enum account account, uint32_t *ret_uid, uint32_t *ret_gid)
{
	if (account_find(accounts[account].name, ret_uid, ret_gid) && *ret_uid != 0)
		return;
	*ret_uid = accounts[account].id;
	*ret_gid = accounts[account].id;
}

/*
 * Returns true if capture must stay root: without a capability for it, only root can open the /proc
 * files of root's processes.
 */
static bool reads_as_root(enum account account)
{
	capability_set have;

	return account == ACCOUNT_CAPTURE && privileges_permitted(&have) == 0 &&
	       privileges_for_reading(have) == 0;
}

void account_ids(enum account account, uint32_t *ret_uid, uint32_t *ret_gid)
{
	if (reads_as_root(account)) {
		*ret_uid = *ret_gid = PRIVILEGES_KEEP_ID;
		return;
	}
	look_up(account, ret_uid, ret_gid);
	keep_unchangeable_ids(ret_uid, ret_gid);
}
