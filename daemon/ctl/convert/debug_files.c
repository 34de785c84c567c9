#include "daemon/ctl/convert/debug_files.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "daemon/process/process_root.h"

int debug_files_open(const char *path, int *ret_fd)
{
	int fd = open(path, O_PATH | O_CLOEXEC);
	int r = fd < 0 ? -errno : process_root_open_regular(fd, ret_fd);

	close_fd(&fd);
	return r;
}

int debug_files_by_id(const char *build_id, int *ret_fd)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%.2s/%s.debug", build_id,
			 build_id + 2);

	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	return debug_files_open(path, ret_fd);
}

int debug_files_by_link(const char *path, const char *name, int *ret_fd)
{
	static const char *const directories[][2] = {
		{"", ""}, {"", "/.debug"}, {"/usr/lib/debug", ""}};
	const char *slash = strrchr(path, '/');
	char at[PATH_MAX];

	if (path[0] != '/')
		return -ENOENT;
	for (size_t i = 0; i < array_size(directories); i++) {
		int n = snprintf(at, sizeof(at), "%s%.*s%s/%s", directories[i][0],
				 (int)(slash - path), path, directories[i][1], name);

		if (n >= 0 && (size_t)n < sizeof(at) && debug_files_open(at, ret_fd) == 0)
			return 0;
	}
	return -ENOENT;
}
