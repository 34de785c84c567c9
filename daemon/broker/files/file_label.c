#include "daemon/broker/files/file_label.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/process/open.h"
#include "lib/base/procfs.h"

int file_label_of(int fd, int32_t pid, uint64_t start, uint64_t end, struct file_label *ret)
{
	static const char copy[] = "/memfd:" OPEN_COPY_NAME " (deleted)";
	char path[PATH_MAX];
	struct stat st;
	size_t n;
	int r = procfs_link(procfs_own_fd(fd).text, path, sizeof(path));

	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return -errno;
	memset(ret, 0, sizeof(*ret));
	if (strcmp(path, copy) == 0) {
		ret->identity = (struct file_identity){
			.device = (uint64_t)-pid,
			.inode = start,
			.size = end - start,
		};
		(void)snprintf(ret->name, sizeof(ret->name), "memory of process %d", pid);
		return 0;
	}
	ret->identity = file_identity_of(&st);
	n = strlen(path);
	if (n >= FILE_LABEL_SIZE)
		memmove(path, path + n - FILE_LABEL_SIZE + 1, FILE_LABEL_SIZE);
	memcpy(ret->name, path, strnlen(path, FILE_LABEL_SIZE - 1));
	return 0;
}
