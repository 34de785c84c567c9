#include "daemon/process/exe_link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool exe_link_is_path(const char *exe)
{
	return exe[0] == '/' && exe[strcspn(exe, "*?")] == '\0';
}

int exe_link_resolve(const char *exe, char ret[PATH_MAX])
{
	return realpath(exe, ret) == NULL ? -errno : 0;
}

/* What ProtectHome= and PrivateTmp= of the unit hide from the service. */
static bool may_be_hidden(const char *exe)
{
	static const char *const dirs[] = {"/home", "/root", "/run/user", "/tmp", "/var/tmp"};

	for (size_t i = 0; i < array_size(dirs); i++) {
		const size_t n = strlen(dirs[i]);

		if (strncmp(exe, dirs[i], n) == 0 && exe[n] == '/')
			return true;
	}
	return false;
}

void exe_link_text(const char *exe, int error, const char *resolved, char ret[EXE_LINK_TEXT_MAX])
{
	ret[0] = '\0';
	if ((error == -ENOENT || error == -ENOTDIR) && may_be_hidden(exe))
		(void)snprintf(ret, EXE_LINK_TEXT_MAX,
			       "no such file is seen here (the systemd service sees none below "
			       "/home, /root and /tmp; a container can have it)");
	else if (error == -ENOENT || error == -ENOTDIR)
		(void)snprintf(ret, EXE_LINK_TEXT_MAX,
			       "no such file on this host (a container can have it)");
	else if (error == 0 && strcmp(exe, resolved) != 0)
		(void)snprintf(ret, EXE_LINK_TEXT_MAX,
			       "is a symbolic link and matches no process; use exe = %s", resolved);
}
