#include "daemon/ctl/debug_files.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/*
 * Opening a device can have effects, and opening a FIFO waits: so the file is
 * looked at before, by a descriptor that is none to read from.
 */
int debug_files_open(const char *path, int *ret_fd)
{
	int looked_at = open(path, O_PATH | O_CLOEXEC);
	char same[64];
	struct stat st;
	int r = 0;

	if (looked_at < 0)
		return -errno;
	(void)snprintf(same, sizeof(same), "/proc/self/fd/%d", looked_at);
	if (fstat(looked_at, &st) < 0)
		r = -errno;
	else if (!S_ISREG(st.st_mode))
		r = -EINVAL;
	if (r == 0) {
		*ret_fd = open(same, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		r = *ret_fd < 0 ? -errno : 0;
	}
	close_fd(&looked_at);
	return r;
}

int debug_files_by_id(const char *build_id, int *ret_fd)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path),
			 "/usr/lib/debug/.build-id/%.2s/%s.debug", build_id,
			 build_id + 2);

	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	return debug_files_open(path, ret_fd);
}

int debug_files_by_link(const char *path, const char *name, int *ret_fd)
{
	static const char *const places[][2] = {
		{"", ""}, {"", "/.debug"}, {"/usr/lib/debug", ""}};
	const char *slash = strrchr(path, '/');
	char at[PATH_MAX];

	if (path[0] != '/')
		return -ENOENT;
	for (size_t i = 0; i < array_size(places); i++) {
		int n = snprintf(at, sizeof(at), "%s%.*s%s/%s", places[i][0],
				 (int)(slash - path), path, places[i][1], name);

		if (n >= 0 && (size_t)n < sizeof(at) &&
		    debug_files_open(at, ret_fd) == 0)
			return 0;
	}
	return -ENOENT;
}
