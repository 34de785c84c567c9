#include "daemon/process/process_root.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "daemon/process/act_as.h"
#include "lib/base/procfs.h"
#include "lib/base/small_file.h"

int process_root_open_regular(int fd, int *ret_fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -ENXIO;
	*ret_fd = open(procfs_own_fd(fd).text, PROCESS_ROOT_OPEN_FLAGS);
	return *ret_fd < 0 ? -errno : 0;
}

/*
 * Opens the regular file at path in the root of the owner's process. Returns -EPERM if this process
 * cannot take the owner's rights. resolve: RESOLVE_* of openat2(2) beside
 * RESOLVE_IN_ROOT and RESOLVE_NO_MAGICLINKS.
 */
static int open_path(const struct owner *owner, const char *path, uint64_t resolve, int *ret_fd)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | resolve,
	};
	struct act_as before;
	int root, fd, r;

	root = open(procfs_path(owner->tid, "root").text, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	r = act_as_owner(owner, &before);
	if (r < 0) {
		close_fd(&root);
		return r;
	}
	fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	r = fd < 0 ? -errno : process_root_open_regular(fd, ret_fd);
	act_as_restore(&before);
	close_fd(&fd);
	close_fd(&root);
	return r;
}

int process_root_open_debug(const struct owner *owner, const char *build_id, int *ret_fd)
{
	char path[PATH_MAX];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%.2s/%s.debug", build_id,
		       build_id + 2);
	*ret_fd = open(path, PROCESS_ROOT_OPEN_FLAGS);
	if (*ret_fd >= 0 && fstat(*ret_fd, &st) == 0 && S_ISREG(st.st_mode))
		return 0;
	close_fd(ret_fd);
	return open_path(owner, path, 0, ret_fd);
}

int process_root_open_debug_link(const struct owner *owner, const char *path, const char *name,
				 int *ret_fd)
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

		if (n >= 0 && (size_t)n < sizeof(at) && open_path(owner, at, 0, ret_fd) == 0)
			return 0;
	}
	return -ENOENT;
}

int process_root_open_perf_map(const struct owner *owner, int *ret_fd)
{
	uint64_t pids[PROCFS_NAMESPACES_MAX];
	char status[PROCFS_STATUS_MAX], path[64];
	struct stat st;
	size_t n;
	int r;

	r = small_file_read(AT_FDCWD, procfs_path(owner->tid, "status").text, status,
			    sizeof(status));
	if (r < 0)
		return r;
	/* NStgid, since the thread may not be the leader. */
	n = procfs_numbers(status, "\nNStgid:", 10, pids, array_size(pids));
	if (n == 0)
		return -ENOENT;
	(void)snprintf(path, sizeof(path), "/tmp/perf-%llu.map", (unsigned long long)pids[n - 1]);
	r = open_path(owner, path, RESOLVE_NO_SYMLINKS, ret_fd);
	if (r < 0)
		return r;
	if (fstat(*ret_fd, &st) == 0 && st.st_uid == owner->uid)
		return 0;
	close_fd(ret_fd);
	return -EPERM;
}

/*
 * The number of bytes of a mapping that are compared with the file: as many as the kernel maps at
 * one page fault.
 */
#define COMPARED_BYTES 65536

/* The path of the target's root for this process; "" if both have the same root. */
static int find_root(int32_t pid, char ret[PATH_MAX])
{
	int r = procfs_link(procfs_path(pid, "root").text, ret, PATH_MAX);

	if (strcmp(ret, "/") == 0)
		ret[0] = '\0';
	return r;
}

/* Parses a line of maps. False if no file is mapped. *ret_path: where its path begins. */
static bool parse_line(const char *line, struct process_mapping *ret, int *ret_path)
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

int process_mapping_find(int32_t pid, uint64_t start, uint64_t end, struct process_mapping *ret)
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
		r = 0;
	}
	(void)fclose(maps);
	return r;
}

bool process_mapping_is_code(int32_t pid, uint64_t start, uint64_t end)
{
	char line[PATH_MAX + 128];
	bool found = false, is_code = false;
	FILE *maps = fopen(procfs_path(pid, "maps").text, "re");

	if (maps == NULL)
		return false;
	while (!found && fgets(line, sizeof(line), maps) != NULL) {
		unsigned long long at, to;
		char permissions[5];
		int name = 0;

		if (sscanf(line, "%llx-%llx %4s %*s %*s %*s %n", &at, &to, permissions, &name) < 3)
			continue;
		found = at == start && to == end;
		is_code = found && permissions[2] == 'x' &&
			  (line[name] == '/' || strcmp(line + name, "[vdso]\n") == 0);
	}
	(void)fclose(maps);
	return is_code;
}

/* Returns true if the file has the bytes of the mapping, or of its beginning, at its offset. */
static bool has_bytes(const struct owner *owner, const struct process_mapping *m, int fd)
{
	static char ours[COMPARED_BYTES], theirs[COMPARED_BYTES];
	const size_t size = min_u64(m->end - m->start, sizeof(ours));
	int mem;
	ssize_t n;
	bool same;

	mem = act_as_open(owner, procfs_path(owner->tid, "mem").text, O_RDONLY | O_CLOEXEC);
	if (mem < 0)
		return false;
	/*
	 * Only bytes that the file has are compared, because a mapping can reach beyond the file's
	 * end.
	 */
	n = pread(fd, ours, size, (off_t)m->offset);
	same = n > 0 && pread(mem, theirs, (size_t)n, (off_t)m->start) == n &&
	       memcmp(ours, theirs, (size_t)n) == 0;
	close_fd(&mem);
	return same;
}

static bool is_mapped_file(const struct owner *owner, const struct process_mapping *m, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_ino != m->inode)
		return false;
	return st.st_dev == m->device || has_bytes(owner, m, fd);
}

int process_mapping_open(const struct owner *owner, const struct process_mapping *m, int *ret_fd)
{
	struct act_as before;
	int fd = -1;

	if (open_path(owner, m->path, 0, &fd) == 0 && is_mapped_file(owner, m, fd)) {
		*ret_fd = fd;
		return 0;
	}
	close_fd(&fd);
	/* The link exe leads to the executable even if the file was renamed or deleted. */
	if (act_as_owner(owner, &before) < 0)
		return -ENOENT;
	fd = open(procfs_path(owner->tid, "exe").text, PROCESS_ROOT_OPEN_FLAGS);
	act_as_restore(&before);
	if (fd >= 0 && is_mapped_file(owner, m, fd)) {
		*ret_fd = fd;
		return 0;
	}
	close_fd(&fd);
	return -ENOENT;
}

/* Uses cached attributes, so it does not wait for the server of a network or FUSE file system. */
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

int process_mapped_files(int32_t pid, FILE *maps, struct mapped_file ret[PROCESS_MAPPED_FILES_MAX])
{
	char line[PATH_MAX + 128], permissions[5];
	unsigned long long start, end, inode;
	int n = 0;

	while (n < PROCESS_MAPPED_FILES_MAX && fgets(line, sizeof(line), maps) != NULL) {
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

int process_code_files(int32_t pid, struct process_code_file ret[PROCESS_MAPPED_FILES_MAX])
{
	FILE *maps = fopen(procfs_path(pid, "maps").text, "re");
	char line[PATH_MAX + 128], device[16], last_device[16] = "";
	unsigned long long start, end, inode, last_inode = 0;
	int n = 0, r;

	if (maps == NULL)
		return -errno;
	while (n < PROCESS_MAPPED_FILES_MAX && fgets(line, sizeof(line), maps) != NULL) {
		/* Most lines are skipped here: sscanf(3) takes longer than all the rest. */
		const char *permissions = strchr(line, ' ');

		if (permissions == NULL || strnlen(permissions, 4) < 4 || permissions[3] != 'x' ||
		    sscanf(line, "%llx-%llx %*s %*x %15s %llu", &start, &end, device, &inode) < 4 ||
		    inode == 0 || (inode == last_inode && strcmp(device, last_device) == 0))
			continue;
		last_inode = inode;
		memcpy(last_device, device, sizeof(device));
		ret[n] = (struct process_code_file){.start = start, .end = end};
		(void)!identify(procfs_path(pid, "map_files/%llx-%llx", start, end).text,
				&ret[n].file);
		n++;
	}
	r = ferror(maps) ? -EIO : n;
	(void)fclose(maps);
	return r;
}
