#include "daemon/common/spool_dir.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "daemon/common/privileges.h"
#include "daemon/common/spool_owner.h"

/* The parent directory of path; "." if path has no slash. */
static int parent_of(const char *path, char ret[PATH_MAX])
{
	size_t n = strlen(path);

	if (n >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(ret, path, n + 1);
	while (n > 0 && ret[n - 1] == '/')
		n--;
	while (n > 0 && ret[n - 1] != '/')
		n--;
	while (n > 1 && ret[n - 1] == '/')
		n--;
	memcpy(ret + n, n == 0 ? "." : "", n == 0 ? 2 : 1);
	return 0;
}

/* Makes the parent directory of path if it does not exist: with mode 0755, as /var/lib. */
static int make_parent(const char *path)
{
	char parent[PATH_MAX];
	int r = parent_of(path, parent);

	if (r < 0)
		return r;
	if (mkdir(parent, 0755) == 0 || errno == EEXIST)
		return 0;
	return -errno;
}

static bool is_default(const char *path)
{
	return strcmp(path, SPOOL_DIR_DEFAULT) == 0;
}

/*
 * Makes uid the directory's owner and removes all rights of others. The directory can belong to
 * root so far, if the broker has made it.
 */
static int take_over(int fd, const char *path, uint32_t uid, uint32_t gid, uint32_t *ret_former)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (uid == PRIVILEGES_KEEP_ID)
		uid = geteuid();
	*ret_former = uid;
	if (st.st_uid != uid && st.st_uid != geteuid()) {
		*ret_former = st.st_uid;
		return spool_owner_change(fd, is_default(path), uid, gid);
	}
	if (gid == PRIVILEGES_KEEP_ID)
		gid = st.st_gid;
	/* Changes only what differs: an unprivileged process cannot change the owner. */
	if ((st.st_uid != uid || st.st_gid != gid) && fchown(fd, uid, gid) < 0)
		return -errno;
	if ((st.st_mode & 07777) != 0700 && fchmod(fd, 0700) < 0)
		return -errno;
	return 0;
}

static int fault(char what[SPOOL_DIR_FAULT_MAX], int error, const char *place)
{
	(void)snprintf(what, SPOOL_DIR_FAULT_MAX, "%s%s%s", place, place[0] != '\0' ? ": " : "",
		       strerror(error));
	return -error;
}

/* The directory does not exist: checks whether this process could make it. */
static int check_parents(const char *path, char what[SPOOL_DIR_FAULT_MAX])
{
	char parent[PATH_MAX], above[PATH_MAX];
	const char *there = parent;
	int r = parent_of(path, parent);

	if (r == 0)
		r = parent_of(parent, above);
	if (r != 0)
		return fault(what, -r, "");
	if (access(parent, F_OK) < 0 && errno == ENOENT)
		there = above;
	if (faccessat(AT_FDCWD, there, W_OK | X_OK, AT_EACCESS) < 0)
		return fault(what, errno, there);
	return 0;
}

int spool_dir_check(const char *path, uint32_t uid, char what[SPOOL_DIR_FAULT_MAX])
{
	struct statvfs fs;
	struct stat st;
	int fd = -1, r;

	if (lstat(path, &st) < 0 && errno == ENOENT)
		return check_parents(path, what);
	fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || fstatvfs(fd, &fs) < 0) {
		r = fault(what, errno, "");
		close_fd(&fd);
		return r;
	}
	if (uid == PRIVILEGES_KEEP_ID)
		uid = geteuid();
	r = st.st_uid == uid || st.st_uid == geteuid()
		    ? 0
		    : spool_owner_check(fd, is_default(path), uid);
	close_fd(&fd);
	if (r < 0) {
		(void)snprintf(what, SPOOL_DIR_FAULT_MAX,
			       "belongs to uid %u, but uid %u has to write to it", st.st_uid, uid);
		return -EPERM;
	}
	return fs.f_flag & ST_RDONLY ? fault(what, EROFS, "") : 0;
}

int spool_dir_open(const char *path, uint32_t uid, uint32_t gid, int *ret_fd, uint32_t *ret_former)
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
	r = flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : take_over(fd, path, uid, gid, ret_former);
	if (r < 0) {
		close_fd(&fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}
