#include "daemon/process/mapped.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "daemon/process/act_as.h"
#include "daemon/process/rooted.h"
#include "lib/base/procfs.h"

/*
 * Of a mapping, to tell whether it is that of a file with its inode: what the
 * kernel maps at once, if it is asked for a page.
 */
#define COMPARED_BYTES 65536

/* How the target's root is called here, "" if as ours is. */
static int find_root(int32_t pid, char ret[PATH_MAX])
{
	int r = procfs_link(procfs_path(pid, "root").text, ret, PATH_MAX);

	if (strcmp(ret, "/") == 0)
		ret[0] = '\0';
	return r;
}

/* A line of maps; its path begins at *ret_path. */
static bool parse_line(const char *line, struct mapped *ret, int *ret_path)
{
	unsigned long long start, end, offset, inode;
	unsigned int dev_major, dev_minor;

	*ret_path = 0;
	if (sscanf(line, "%llx-%llx %*s %llx %x:%x %llu %n", &start, &end, &offset, &dev_major,
		   &dev_minor, &inode, ret_path) < 6)
		return false;
	ret->start = start;
	ret->end = end;
	ret->offset = offset;
	ret->device = makedev(dev_major, dev_minor);
	ret->inode = (ino_t)inode;
	return line[*ret_path] == '/';
}

int mapped_find(int32_t pid, uint64_t start, uint64_t end, struct mapped *ret)
{
	char line[PATH_MAX + 128], root[PATH_MAX];
	size_t root_size;
	FILE *maps;
	int r;

	r = find_root(pid, root);
	if (r < 0)
		return r;
	root_size = strlen(root);
	maps = fopen(procfs_path(pid, "maps").text, "re");
	if (maps == NULL)
		return -errno;
	for (r = -ENOENT; r == -ENOENT && fgets(line, sizeof(line), maps) != NULL;) {
		int at;

		if (!parse_line(line, ret, &at) || ret->start != start || ret->end != end ||
		    strncmp(line + at, root, root_size) != 0 || line[(size_t)at + root_size] != '/')
			continue;
		line[strcspn(line, "\n")] = '\0';
		(void)snprintf(ret->path, sizeof(ret->path), "%s", line + (size_t)at + root_size);
		ret->pid = pid;
		r = 0;
	}
	(void)fclose(maps);
	return r;
}

/* Is what is mapped, or its beginning, in the file where it is to be? */
static bool has_bytes(const struct mapped *m, int fd)
{
	static char ours[COMPARED_BYTES], theirs[COMPARED_BYTES];
	const size_t size = min_u64(m->end - m->start, sizeof(ours));
	int mem;
	ssize_t n;
	bool same;

	mem = act_as_open(m->pid, procfs_path(m->pid, "mem").text, O_RDONLY | O_CLOEXEC);
	if (mem < 0)
		return false;
	/* Behind the file's end there is nothing to compare. */
	n = pread(fd, ours, size, (off_t)m->offset);
	same = n > 0 && pread(mem, theirs, (size_t)n, (off_t)m->start) == n &&
	       memcmp(ours, theirs, (size_t)n) == 0;
	close_fd(&mem);
	return same;
}

static bool is_file(const struct mapped *m, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_ino != m->inode)
		return false;
	return st.st_dev == m->device || has_bytes(m, fd);
}

int mapped_open(const struct mapped *m, int *ret_fd)
{
	struct act_as before;
	int fd = -1;

	if (rooted_open(m->pid, m->path, 0, &fd) == 0 && is_file(m, fd)) {
		*ret_fd = fd;
		return 0;
	}
	close_fd(&fd);
	/* That leads to it under whatever name it has, or none. */
	if (act_as_process(m->pid, &before) < 0)
		return -ENOENT;
	fd = open(procfs_path(m->pid, "exe").text, ROOTED_OPEN_FLAGS);
	act_as_self(&before);
	if (fd >= 0 && is_file(m, fd)) {
		*ret_fd = fd;
		return 0;
	}
	close_fd(&fd);
	return -ENOENT;
}

/* Waits for no file system: what it knows of the file is enough. */
static bool identify(const char *path, struct file_identity *ret)
{
	struct statx st;

	if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &st) < 0)
		return false;
	*ret = (struct file_identity){
		.device = makedev(st.stx_dev_major, st.stx_dev_minor),
		.inode = st.stx_ino,
		.size = st.stx_size,
		.ctime_ns = (uint64_t)st.stx_ctime.tv_sec * NS_PER_SEC + st.stx_ctime.tv_nsec,
	};
	return true;
}

int mapped_files(int32_t pid, FILE *maps, struct mapped_file ret[MAPPED_FILES_MAX])
{
	char line[PATH_MAX + 128], permissions[5];
	unsigned long long start, end, inode;
	int n = 0;

	while (n < MAPPED_FILES_MAX && fgets(line, sizeof(line), maps) != NULL) {
		if (sscanf(line, "%llx-%llx %4s %*x %*s %llu", &start, &end, permissions, &inode) <
			    4 ||
		    permissions[2] != 'x' || inode == 0)
			continue;
		ret[n].start = start;
		n += identify(procfs_path(pid, "map_files/%llx-%llx", start, end).text,
			      &ret[n].file);
	}
	return ferror(maps) ? -EIO : n;
}
