#include "daemon/accounts.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>

/*
 * Debian keeps 65000 to 65533 free of accounts, and systemd gives numbers
 * for a while up to 65519 only.
 */
static const struct {
	const char *name;
	uint32_t id;
} accounts[] = {
	[ACCOUNT_CAPTURE] = {"sentry-profd-capture", 65521},
	[ACCOUNT_UNWIND] = {"sentry-profd-unwind", 65522},
	[ACCOUNT_SHIP] = {"sentry-profd-ship", 65523},
};

void account_ids(enum account account, uint32_t *ret_uid, uint32_t *ret_gid)
{
	FILE *file = fopen("/etc/passwd", "re");
	struct passwd *entry;

	*ret_uid = accounts[account].id;
	*ret_gid = accounts[account].id;
	if (file == NULL)
		return;
	while ((entry = fgetpwent(file)) != NULL) {
		if (strcmp(entry->pw_name, accounts[account].name) != 0 ||
		    entry->pw_uid == 0)
			continue;
		*ret_uid = entry->pw_uid;
		*ret_gid = entry->pw_gid;
		break;
	}
	(void)fclose(file);
}
