#include "daemon/process/rooted.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "daemon/process/act_as.h"
#include "lib/base/procfs.h"
#include "lib/base/small_file.h"

/* /proc/PID/status: about 1.5 KB, more with many groups. */
#define STATUS_MAX 16384

int rooted_open_regular(int fd, int *ret_fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -ENXIO;
	*ret_fd = open(procfs_own_fd(fd).text, ROOTED_OPEN_FLAGS);
	return *ret_fd < 0 ? -errno : 0;
}

int rooted_open(int32_t pid, const char *path, uint64_t resolve, int *ret_fd)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | resolve,
	};
	struct act_as before;
	int root, fd, r;

	root = open(procfs_path(pid, "root").text, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	r = act_as_process(pid, &before);
	if (r < 0) {
		close_fd(&root);
		return r;
	}
	fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	r = fd < 0 ? -errno : rooted_open_regular(fd, ret_fd);
	act_as_self(&before);
	close_fd(&fd);
	close_fd(&root);
	return r;
}

int rooted_debug(int32_t pid, const char *build_id, int *ret_fd)
{
	char path[PATH_MAX];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%.2s/%s.debug", build_id,
		       build_id + 2);
	*ret_fd = open(path, ROOTED_OPEN_FLAGS);
	if (*ret_fd >= 0 && fstat(*ret_fd, &st) == 0 && S_ISREG(st.st_mode))
		return 0;
	close_fd(ret_fd);
	return rooted_open(pid, path, 0, ret_fd);
}

int rooted_debug_link(int32_t pid, const char *path, const char *name, int *ret_fd)
{
	static const char *const places[][2] = {{"", ""}, {"", "/.debug"}, {"/usr/lib/debug", ""}};
	const char *slash = strrchr(path, '/');
	int dir_size = slash == NULL ? 0 : (int)(slash - path);
	char at[PATH_MAX];

	if (path[0] != '/')
		return -ENOENT;
	for (size_t i = 0; i < array_size(places); i++) {
		int n = snprintf(at, sizeof(at), "%s%.*s%s/%s", places[i][0], dir_size, path,
				 places[i][1], name);

		if (n >= 0 && (size_t)n < sizeof(at) && rooted_open(pid, at, 0, ret_fd) == 0)
			return 0;
	}
	return -ENOENT;
}

int rooted_perf_map(int32_t pid, int *ret_fd)
{
	uint64_t uid, pids[PROCFS_NAMESPACES_MAX];
	char status[STATUS_MAX], path[64];
	struct stat st;
	size_t n;
	int r;

	r = small_file_read(AT_FDCWD, procfs_path(pid, "status").text, status, sizeof(status));
	if (r < 0)
		return r;
	/* Of the process: pid may be another one of its threads. */
	n = procfs_numbers(status, "\nNStgid:", 10, pids, array_size(pids));
	if (n == 0 || procfs_numbers(status, "\nUid:", 10, &uid, 1) == 0)
		return -ENOENT;
	(void)snprintf(path, sizeof(path), "/tmp/perf-%llu.map", (unsigned long long)pids[n - 1]);
	r = rooted_open(pid, path, RESOLVE_NO_SYMLINKS, ret_fd);
	if (r < 0)
		return r;
	if (fstat(*ret_fd, &st) == 0 && st.st_uid == uid)
		return 0;
	close_fd(ret_fd);
	return -EPERM;
}
