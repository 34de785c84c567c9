#include "daemon/broker/delivery/output.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/process/act_as.h"

#define NAME_SIZE 96

/* How many names are tried for a new directory. */
#define NEW_DIRS_MAX 100

/*
 * Root has dropped CAP_DAC_OVERRIDE, but can change its user: files are made as the owner of
 * their directory. Returns false if this process is not root, the owner is unknown, or root
 * cannot become that user.
 */
static bool act_as_user_of(const struct stat *st, struct act_as *ret)
{
	return geteuid() == 0 && act_as(st->st_uid, st->st_gid, ret) == 0;
}

static bool act_as_directory(int dir_fd, struct act_as *ret)
{
	struct stat st;

	return fstat(dir_fd, &st) == 0 && act_as_user_of(&st, ret);
}

static void end_act(bool acts, const struct act_as *before)
{
	if (acts)
		act_as_restore(before);
}

static int open_dir(int at, const char *path)
{
	return openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Makes the last component of path as the owner of its parent directory. */
static int make_dir(const char *path)
{
	char parent[PATH_MAX];
	size_t n = strlen(path);
	const char *name = path;
	struct act_as before;
	int fd, r = 0;
	bool acts;

	if (n >= sizeof(parent))
		return -ENAMETOOLONG;
	memcpy(parent, path, n + 1);
	while (n > 1 && parent[n - 1] == '/')
		parent[--n] = '\0';
	while (n > 0 && parent[n - 1] != '/')
		n--;
	name = path + n;
	parent[n] = '\0';
	fd = open_dir(AT_FDCWD, n == 0 ? "." : parent);
	if (fd < 0)
		return -errno;
	acts = act_as_directory(fd, &before);
	if (mkdirat(fd, name, 0755) < 0)
		r = -errno;
	end_act(acts, &before);
	close_fd(&fd);
	return r;
}

static int make_new_dir(char ret[PATH_MAX])
{
	time_t now = time(NULL);
	struct tm tm;
	char stamp[32];

	(void)localtime_r(&now, &tm);
	if (strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &tm) == 0)
		return -EINVAL;
	for (int i = 0; i < NEW_DIRS_MAX; i++) {
		int r;

		if (i == 0)
			(void)snprintf(ret, PATH_MAX, "sentry-profd-%s", stamp);
		else
			(void)snprintf(ret, PATH_MAX, "sentry-profd-%s-%d", stamp, i);
		r = make_dir(ret);
		if (r != -EEXIST)
			return r;
	}
	return -EEXIST;
}

/*
 * Makes a new file in place of one that may exist. The directory may be writable for every user,
 * and a file of this name a link or a FIFO.
 */
static int create_file(int dir_fd, const char *name)
{
	struct act_as before;
	int fd, r = 0;
	bool acts;

	acts = act_as_directory(dir_fd, &before);
	(void)unlinkat(dir_fd, name, 0);
	fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		r = -errno;
	end_act(acts, &before);
	/* cppcheck-suppress resourceLeak ; the caller closes it */
	return fd < 0 ? r : fd;
}

int output_rename_in(int dir_fd, const char *from, const char *to)
{
	struct act_as before;
	const bool acts = act_as_directory(dir_fd, &before);
	const int r = renameat(dir_fd, from, dir_fd, to) < 0 ? -errno : 0;

	end_act(acts, &before);
	return r;
}

void output_unlink_in(int dir_fd, const char *name)
{
	struct act_as before;
	const bool acts = act_as_directory(dir_fd, &before);

	(void)unlinkat(dir_fd, name, 0);
	end_act(acts, &before);
}

static void remove_made(const struct output *o)
{
	char parent[PATH_MAX + 4];
	struct act_as before;
	struct stat st;
	bool acts;

	(void)snprintf(parent, sizeof(parent), "%s/..", o->path);
	/* Opens nothing: opening the directory may have failed for a lack of descriptors. */
	acts = stat(parent, &st) == 0 && act_as_user_of(&st, &before);
	(void)rmdir(o->path);
	end_act(acts, &before);
}

void output_close(struct output *o)
{
	if (o->made)
		remove_made(o);
	o->made = false;
	close_fd(&o->dir_fd);
}

int output_open(struct output *o, const char *path)
{
	static const char probe[] = ".sentry-profd-probe";
	int r = 0, fd;

	*o = (struct output){.dir_fd = -1};
	if (path == NULL) {
		r = make_new_dir(o->path);
		o->made = r == 0;
	} else {
		if (strlen(path) >= sizeof(o->path))
			return -ENAMETOOLONG;
		memcpy(o->path, path, strlen(path) + 1);
		if (access(path, F_OK) < 0 && errno == ENOENT) {
			r = make_dir(path);
			o->made = r == 0;
		}
	}
	if (r < 0)
		return r;
	o->dir_fd = open_dir(AT_FDCWD, o->path);
	fd = o->dir_fd < 0 ? -errno : create_file(o->dir_fd, probe);
	if (fd < 0) {
		output_close(o);
		return fd;
	}
	close_fd(&fd);
	output_unlink_in(o->dir_fd, probe);
	return 0;
}

int output_open_private(struct output *o, const char *path)
{
	*o = (struct output){.dir_fd = -1};
	if (strlen(path) >= sizeof(o->path))
		return -ENAMETOOLONG;
	memcpy(o->path, path, strlen(path) + 1);
	if (mkdir(path, 0700) < 0)
		return -errno;
	o->made = true;
	o->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (o->dir_fd < 0) {
		int r = -errno;

		output_close(o);
		return r;
	}
	return 0;
}

void output_clear(const struct output *o)
{
	const struct dirent *entry;
	int fd = open_dir(o->dir_fd, ".");
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (dir == NULL) {
		close_fd(&fd);
		return;
	}
	/* unlink(2) refuses "." and "..". */
	while ((entry = readdir(dir)) != NULL)
		output_unlink_in(o->dir_fd, entry->d_name);
	(void)closedir(dir);
}

static void make_name(char ret[NAME_SIZE], uint64_t seq, const char *chunk_id, bool complete)
{
	(void)snprintf(ret, NAME_SIZE, "%s%06llu-%.32s.envelope%s", complete ? "" : ".",
		       (unsigned long long)seq, chunk_id, complete ? "" : ".part");
}

int output_create(const struct output *o, uint64_t seq, const char *chunk_id, int *ret_fd)
{
	char name[NAME_SIZE];
	int fd;

	make_name(name, seq, chunk_id, false);
	fd = create_file(o->dir_fd, name);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

int output_finish(const struct output *o, uint64_t seq, const char *chunk_id)
{
	char from[NAME_SIZE], to[NAME_SIZE];

	make_name(from, seq, chunk_id, false);
	make_name(to, seq, chunk_id, true);
	return output_rename_in(o->dir_fd, from, to);
}

void output_remove(const struct output *o, uint64_t seq, const char *chunk_id)
{
	char name[NAME_SIZE];

	make_name(name, seq, chunk_id, false);
	output_unlink_in(o->dir_fd, name);
}

int output_open_file(const char *path, int *ret_fd)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}
