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

void exe_link_text(const char *exe, int error, const char *resolved, char ret[EXE_LINK_TEXT_MAX])
{
	ret[0] = '\0';
	if (error == -ENOENT || error == -ENOTDIR)
		(void)snprintf(ret, EXE_LINK_TEXT_MAX,
			       "no such file on this host (a container can have it)");
	else if (error == 0 && strcmp(exe, resolved) != 0)
		(void)snprintf(ret, EXE_LINK_TEXT_MAX,
			       "is a symbolic link and matches no process; use exe = %s", resolved);
}
