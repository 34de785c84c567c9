#include "daemon/common/spool_owner.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/ship/spool.h"

/* A DSN's number in hexadecimal digits (daemon/ship/spool_dirs.h). */
#define SUBDIR_DIGITS 16

struct walk {
	int dir_fd;
	bool is_subdir, changes;
	uint32_t former, uid, gid;
	size_t n; /* names */
};

/* A file of the spool, one that was never renamed to its name, or one that was set aside. */
static bool is_file_name(const char *name)
{
	char copy[SPOOL_NAME_SIZE + sizeof(SPOOL_ASIDE)];
	const size_t n = strlen(name), aside = strlen(SPOOL_ASIDE);
	struct spool_entry e;

	if (n >= sizeof(copy))
		return false;
	memcpy(copy, name, n + 1);
	if (n > aside && strcmp(copy + n - aside, SPOOL_ASIDE) == 0)
		copy[n - aside] = '\0';
	return spool_name_parse(copy[0] == '.' ? copy + 1 : copy, &e) == 0;
}

static bool is_subdir_name(const char *name)
{
	return strlen(name) == SUBDIR_DIGITS && strspn(name, "0123456789abcdef") == SUBDIR_DIGITS;
}

static int walk_name(void *ctx, const char *name);

static int walk_subdir(const struct walk *above, int fd)
{
	struct walk w = *above;

	w.dir_fd = fd;
	w.is_subdir = true;
	return spool_for_each_name(fd, walk_name, &w);
}

static int walk_file(struct walk *w, int fd, const char *name)
{
	struct stat st;
	int r = 0;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != w->former && st.st_uid != w->uid && st.st_uid != 0)
		return -EPERM;
	if (S_ISDIR(st.st_mode) && !w->is_subdir && is_subdir_name(name))
		r = walk_subdir(w, fd);
	else if (!S_ISREG(st.st_mode) || st.st_nlink != 1 || !is_file_name(name))
		r = -EPERM;
	w->n++;
	if (r == 0 && w->changes && fchownat(fd, "", w->uid, w->gid, AT_EMPTY_PATH) < 0)
		r = -errno;
	return r;
}

static int walk_name(void *ctx, const char *name)
{
	struct walk *w = ctx;
	int fd, r;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return 0;
	fd = openat(w->dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = walk_file(w, fd, name);
	close_fd(&fd);
	return r;
}

static int walk(struct walk *w, bool may_be_empty)
{
	struct stat st, parent;
	int r;

	if (geteuid() != 0)
		return -EPERM;
	if (fstat(w->dir_fd, &st) < 0 || fstatat(w->dir_fd, "..", &parent, 0) < 0)
		return -errno;
	if (parent.st_uid != 0 || (parent.st_mode & 022) != 0 || (st.st_mode & 07777) != 0700)
		return -EPERM;
	w->former = st.st_uid;
	r = spool_for_each_name(w->dir_fd, walk_name, w);
	return r == 0 && w->n == 0 && !may_be_empty ? -EPERM : r;
}

int spool_owner_check(int dir_fd, bool may_be_empty, uint32_t uid)
{
	struct walk w = {.dir_fd = dir_fd, .uid = uid};

	return walk(&w, may_be_empty);
}

int spool_owner_change(int dir_fd, bool may_be_empty, uint32_t uid, uint32_t gid)
{
	struct walk w = {.dir_fd = dir_fd, .uid = uid, .gid = gid, .changes = true};
	int r = spool_owner_check(dir_fd, may_be_empty, uid);

	if (r == 0)
		r = walk(&w, may_be_empty);
	if (r == 0 && fchownat(dir_fd, "", uid, gid, AT_EMPTY_PATH) < 0)
		r = -errno;
	return r;
}
