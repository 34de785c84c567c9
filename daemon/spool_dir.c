#include "daemon/spool_dir.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/msg.h"

/* The directory that path is in, if it is not there: 0755, as /var/lib. */
static int make_parent(const char *path)
{
	char parent[PATH_MAX];
	size_t n = strlen(path);

	if (n >= sizeof(parent))
		return -ENAMETOOLONG;
	memcpy(parent, path, n + 1);
	while (n > 0 && parent[n - 1] == '/')
		n--;
	while (n > 0 && parent[n - 1] != '/')
		n--;
	while (n > 1 && parent[n - 1] == '/')
		n--;
	parent[n] = '\0';
	if (n == 0 || mkdir(parent, 0755) == 0 || errno == EEXIST)
		return 0;
	return -errno;
}

/* uid's alone. It may be root's, who made it: now, or before a setup. */
static int take_over(int fd, uint32_t uid, uint32_t gid)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (uid == MSG_ID_KEEP)
		uid = geteuid();
	if (st.st_uid != uid && st.st_uid != geteuid())
		return -EPERM;
	if (gid == MSG_ID_KEEP)
		gid = st.st_gid;
	/* What is as it shall be needs no right to change it. */
	if ((st.st_uid != uid || st.st_gid != gid) && fchown(fd, uid, gid) < 0)
		return -errno;
	if ((st.st_mode & 07777) != 0700 && fchmod(fd, 0700) < 0)
		return -errno;
	return 0;
}

int spool_dir_open(const char *path, uint32_t uid, uint32_t gid, int *ret_fd)
{
	int fd, r;

	r = make_parent(path);
	if (r < 0)
		return r;
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = take_over(fd, uid, gid);
	if (r == 0 && flock(fd, LOCK_EX | LOCK_NB) < 0)
		r = -errno;
	if (r < 0) {
		close_fd(&fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}
