#include "daemon/process/open.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "daemon/msg/msg_unwind.h"
#include "daemon/process/act_as.h"
#include "daemon/process/exe_link.h"
#include "daemon/process/leak_options.h"
#include "daemon/process/process_root.h"
#include "lib/base/buf.h"
#include "lib/base/procfs.h"
#include "lib/base/small_file.h"

#define COPY_BLOCK 65536

/* From fs/fuse, fs/smb, fs/9p and fs/ceph: older versions of <linux/magic.h> lack these numbers. */
#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546
#endif
#ifndef CIFS_SUPER_MAGIC
#define CIFS_SUPER_MAGIC 0xff534d42
#endif
#ifndef SMB2_SUPER_MAGIC
#define SMB2_SUPER_MAGIC 0xfe534d42
#endif
#ifndef CEPH_SUPER_MAGIC
#define CEPH_SUPER_MAGIC 0x00c36400
#endif

static int make_copy(int *ret_fd)
{
	*ret_fd = memfd_create(OPEN_COPY_NAME, MFD_CLOEXEC);
	return *ret_fd < 0 ? -errno : 0;
}

/* Copies up to max bytes, from the position of from to the position of to. */
static int append_fd(int to, int from, uint64_t max)
{
	static char block[COPY_BLOCK];

	while (max > 0) {
		ssize_t n = read(from, block, min_u64(max, sizeof(block)));
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		max -= (uint64_t)n;
		r = write_all(to, block, (size_t)n);
		if (r < 0)
			return r;
	}
	return 0;
}

static int append_file(int to, const char *path, uint64_t max)
{
	int from = open(path, O_RDONLY | O_CLOEXEC), r;

	if (from < 0)
		return -errno;
	r = append_fd(to, from, max);
	close_fd(&from);
	return r;
}

/* Rewinds a complete copy and hands it out; if r is an error, closes the copy. */
static int finish_copy(int r, int *copy, int *ret_fd)
{
	if (r == 0 && lseek(*copy, 0, SEEK_SET) < 0)
		r = -errno;
	if (r < 0)
		close_fd(copy);
	else
		*ret_fd = *copy;
	return r;
}

/* Copies up to max bytes of from, starting at offset, to a new memfd. */
static int copy_fd(int from, uint64_t offset, uint64_t max, int *ret_fd)
{
	int to = -1, r;

	r = make_copy(&to);
	if (r == 0 && lseek(from, (off_t)offset, SEEK_SET) < 0)
		r = -errno;
	if (r == 0)
		r = append_fd(to, from, max);
	return finish_copy(r, &to, ret_fd);
}

/* Copies a file of a process in /proc. */
static int copy_file(const struct owner *owner, const char *path, uint64_t offset, uint64_t max,
		     int *ret_fd)
{
	int from = act_as_open(owner, path, O_RDONLY | O_CLOEXEC), r;

	if (from < 0)
		return from;
	r = copy_fd(from, offset, max, ret_fd);
	close_fd(&from);
	return r;
}

/*
 * Writes which file a path leads to, as text with its NUL: device, inode, and modification
 * time, which deleting or renaming the file does not change.
 */
static int write_identity(int to, const char *path)
{
	char text[96] = "";
	struct stat st;

	if (stat(path, &st) == 0)
		(void)snprintf(text, sizeof(text), "%llx %llx %lld.%09ld",
			       (unsigned long long)st.st_dev, (unsigned long long)st.st_ino,
			       (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	return write_all(to, text, strlen(text) + 1);
}

/*
 * Writes argv[0], and all arguments with spaces between them. A longer argv[0] is not the name of a
 * file. What cannot be read counts as empty.
 */
static int write_arguments(int to, int32_t pid)
{
	char bytes[PATH_MAX] = "";
	size_t n = sizeof(bytes);
	int r;

	(void)!small_file_read(AT_FDCWD, procfs_path(pid, "cmdline").text, bytes, sizeof(bytes));
	r = write_all(to, bytes, strlen(bytes) + 1);
	while (n > 0 && bytes[n - 1] == '\0')
		n--;
	for (size_t i = 0; i < n; i++)
		if (bytes[i] == '\0')
			bytes[i] = ' ';
	return r < 0 ? r : write_all(to, bytes, strlen(bytes) + 1);
}

/*
 * Copies all texts of FILE_KIND_PROGRAM at once, because each request costs two passes of the
 * broker's loop.
 */
static int copy_program(const struct open_order *o, int *ret_fd)
{
	const int32_t pid = o->owner.tid;
	const struct procfs_path exe = procfs_path(pid, "exe");
	char bytes[PATH_MAX];
	int to = -1, r;

	r = procfs_link(exe.text, bytes, sizeof(bytes));
	if (r < 0)
		return r;
	r = make_copy(&to);
	if (r == 0)
		r = write_all(to, bytes, strlen(bytes) + 1);
	if (r == 0)
		r = write_identity(to, exe.text);
	if (r == 0)
		r = write_arguments(to, pid);
	/* An environment that cannot be read counts as empty. */
	if (r == 0 && !o->no_memory)
		(void)!append_file(to, procfs_path(pid, "environ").text, MSG_ENVIRON_MAX);
	return finish_copy(r, &to, ret_fd);
}

/* Appends the identities of mapped files to the text of maps in to. */
static int append_mapped_files(int to, int32_t pid)
{
	static struct mapped_file files[PROCESS_MAPPED_FILES_MAX];
	static const char zeros[sizeof(uint64_t)];
	const off_t size = lseek(to, 0, SEEK_CUR);
	FILE *text;
	int n, r;

	if (size < 0)
		return -errno;
	text = fopen(procfs_own_fd(to).text, "re");
	if (text == NULL)
		return -errno;
	n = process_mapped_files(pid, text, files);
	(void)fclose(text);
	if (n < 0)
		return n;
	r = write_all(to, zeros, msg_maps_files((size_t)size) - (size_t)size);
	return r < 0 ? r : write_all(to, files, (size_t)n * sizeof(files[0]));
}

/* FILE_KIND_MAPS. Returns -E2BIG if the text is longer than MSG_MAPS_MAX. */
static int copy_maps(int32_t pid, int *ret_fd)
{
	int to = -1, r;

	r = make_copy(&to);
	if (r == 0)
		r = append_file(to, procfs_path(pid, "maps").text, MSG_MAPS_MAX + 1);
	if (r == 0 && lseek(to, 0, SEEK_CUR) > MSG_MAPS_MAX)
		r = -E2BIG;
	if (r == 0)
		r = append_mapped_files(to, pid);
	return finish_copy(r, &to, ret_fd);
}

/* Writes n bytes to a new memfd. */
static int hand_out(const void *bytes, size_t n, int *ret_fd)
{
	int to = -1, r = make_copy(&to);

	if (r == 0)
		r = write_all(to, bytes, n);
	return finish_copy(r, &to, ret_fd);
}

static int list_code(int32_t pid, int *ret_fd)
{
	static struct process_code_file files[PROCESS_MAPPED_FILES_MAX];
	int n = process_code_files(pid, files);

	return n < 0 ? n : hand_out(files, (size_t)n * sizeof(files[0]), ret_fd);
}

/* Reads the environment here, since it lies in the memory of the process. */
static int read_leak_options(const struct owner *owner, int *ret_fd)
{
	struct leak_options options;
	struct buf text;
	int fd = act_as_open(owner, procfs_path(owner->tid, "environ").text, O_RDONLY | O_CLOEXEC),
	    r;

	if (fd < 0)
		return fd;
	buf_init(&text, MSG_ENVIRON_MAX);
	r = buf_read_fd(&text, fd);
	if (r == 0) {
		leak_options_of_environ(buf_string(&text), text.len, &options);
		r = hand_out(&options, sizeof(options), ret_fd);
	}
	buf_fini(&text);
	close_fd(&fd);
	return r;
}

/*
 * Opens the file of a link in /proc/PID/map_files. Returns -ENXIO, and opens nothing, if it is not
 * a regular file: opening a device can have effects.
 */
static int open_mapped(const struct owner *owner, const char *path, int *ret_fd)
{
	int at = act_as_open(owner, path, O_PATH | O_CLOEXEC), r = 0;
	struct stat st;

	if (at < 0)
		return at;
	if (fstat(at, &st) < 0 || !S_ISREG(st.st_mode))
		r = -ENXIO;
	else
		*ret_fd = act_as_open(owner, procfs_own_fd(at).text, PROCESS_ROOT_OPEN_FLAGS);
	if (r == 0 && *ret_fd < 0)
		r = *ret_fd;
	close_fd(&at);
	return r;
}

/*
 * Replaces *fd by a copy if the file is served by FUSE: its server can make a process hang
 * that reads or even closes the file (fuse_flush() in fs/fuse/file.c), so the file must not
 * leave the helper. If statfs fails, the file is copied, too: only a server can refuse it.
 */
static int copy_of_fuse(int *fd)
{
	struct statfs fs;
	struct stat st;
	int copy = -1, r;

	if (fstatfs(*fd, &fs) == 0 && fs.f_type != FUSE_SUPER_MAGIC)
		return 0;
	r = fstat(*fd, &st) < 0 ? -errno : 0;
	if (r == 0 && (uint64_t)st.st_size > OPEN_COPY_MAX)
		r = -EFBIG;
	if (r == 0)
		r = copy_fd(*fd, 0, OPEN_COPY_MAX, &copy);
	close_fd(fd);
	if (r == 0)
		*fd = copy;
	return r;
}

/* Works without CAP_CHECKPOINT_RESTORE, which the root of a container lacks. */
static int open_by_path(const struct open_order *o, int *ret_fd)
{
	struct process_mapping m;
	int r = process_mapping_find(o->owner.tid, o->start, o->end, &m);

	return r < 0 ? r : process_mapping_open(&o->owner, &m, ret_fd);
}

static int open_image(const struct open_order *o, int *ret_fd)
{
	const struct procfs_path path =
		procfs_path(o->owner.tid, "map_files/%llx-%llx", (unsigned long long)o->start,
			    (unsigned long long)o->end);
	int r;

	r = open_mapped(&o->owner, path.text, ret_fd);
	if (r == -ENXIO)
		return r;
	if (r != 0 && r != -ENOENT)
		r = open_by_path(o, ret_fd);
	if (r == 0)
		r = copy_of_fuse(ret_fd);
	if (r == 0 || o->no_memory || o->kind == FILE_KIND_CODE)
		return r;
	/* The vDSO, or a file that cannot be opened: copy the mapped bytes. */
	if (!process_mapping_is_code(o->owner.tid, o->start, o->end))
		return -EACCES;
	return copy_file(&o->owner, procfs_path(o->owner.tid, "mem").text, o->start,
			 min_u64(o->end - o->start, OPEN_COPY_MAX), ret_fd);
}

/*
 * Looks beside the file that is mapped at the range. The target chose the names in its path,
 * so the path is resolved in the target's root.
 */
static int open_debug_link(const struct open_order *o, int *ret_fd)
{
	struct process_mapping m;
	int r = process_mapping_find(o->owner.tid, o->start, o->end, &m);

	return r < 0 ? r : process_root_open_debug_link(&o->owner, m.path, o->name, ret_fd);
}

/* Opens a file that is found by name in the target's root. A FUSE file is replaced by a copy. */
static int open_in_root(const struct open_order *o, int *ret_fd)
{
	int r = -EINVAL;

	if (o->kind == FILE_KIND_DEBUG)
		r = process_root_open_debug(&o->owner, o->name, ret_fd);
	else if (o->kind == FILE_KIND_DEBUG_LINK)
		r = open_debug_link(o, ret_fd);
	else if (o->kind == FILE_KIND_PERF_MAP)
		r = process_root_open_perf_map(&o->owner, ret_fd);
	return r < 0 ? r : copy_of_fuse(ret_fd);
}

/*
 * Returns false for a file whose file system has a server: another machine, or a process (FUSE).
 * A file system below overlayfs is not seen.
 */
static bool is_local(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return false;
	switch ((uint32_t)fs.f_type) {
	case FUSE_SUPER_MAGIC:
	case NFS_SUPER_MAGIC:
	case CIFS_SUPER_MAGIC:
	case SMB2_SUPER_MAGIC:
	case SMB_SUPER_MAGIC:
	case CEPH_SUPER_MAGIC:
	case AFS_SUPER_MAGIC:
	case V9FS_MAGIC:
		return false;
	default:
		return true;
	}
}

/*
 * Copies a pid file of the configuration, which must be a regular file (else -ENXIO) of a local
 * file system (else -EREMOTE).
 */
static int open_pid_file(const char *path, int *ret_fd)
{
	int at = open(path, O_PATH | O_CLOEXEC), fd = -1, r;

	if (at < 0)
		return -errno;
	r = is_local(at) ? process_root_open_regular(at, &fd) : -EREMOTE;
	if (r == 0)
		r = copy_fd(fd, 0, OPEN_PID_FILE_MAX, ret_fd);
	close_fd(&fd);
	close_fd(&at);
	return r;
}

/* Writes a path of the configuration, with its links resolved, to a memfd. */
static int resolve_exe(const char *path, int *ret_fd)
{
	char resolved[PATH_MAX];
	int r = exe_link_resolve(path, resolved);
	int fd = r < 0 ? -1 : memfd_create("exe", MFD_CLOEXEC);

	if (r == 0)
		r = fd < 0 ? -errno : write_all(fd, resolved, strlen(resolved));
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	if (r < 0)
		close_fd(&fd);
	else
		*ret_fd = fd;
	return r;
}

static int open_kind(const struct open_order *order, int *ret_fd)
{
	const char *name = "";
	uint64_t max = OPEN_COPY_MAX;

	switch ((enum file_kind)order->kind) {
	case FILE_KIND_IMAGE:
	case FILE_KIND_CODE:
		return open_image(order, ret_fd);
	case FILE_KIND_DEBUG:
	case FILE_KIND_DEBUG_LINK:
	case FILE_KIND_PERF_MAP:
		return open_in_root(order, ret_fd);
	case FILE_KIND_MAPS:
		return copy_maps(order->owner.tid, ret_fd);
	case FILE_KIND_PROGRAM:
		return copy_program(order, ret_fd);
	case FILE_KIND_CMDLINE:
		name = "cmdline";
		max = PATH_MAX; /* as many bytes as a section's rule compares */
		break;
	case FILE_KIND_ENVIRON:
		name = "environ";
		max = MSG_ENVIRON_MAX;
		break;
	case FILE_KIND_PID_FILE:
		return open_pid_file(order->name, ret_fd);
	case FILE_KIND_EXE_LINK:
		return resolve_exe(order->name, ret_fd);
	case FILE_KIND_CODE_LIST:
		return list_code(order->owner.tid, ret_fd);
	case FILE_KIND_LEAK_OPTIONS:
		return read_leak_options(&order->owner, ret_fd);
	case FILE_KIND_END:
		return -EINVAL;
	}
	return copy_file(&order->owner, procfs_path(order->owner.tid, "%s", name).text, 0, max,
			 ret_fd);
}

/* Reads the owner anew; ids are those of the order. Returns 0, -ESRCH or -OPEN_OTHER_OWNER. */
static int read_unchanged(const struct owner *ordered, struct owner *ret)
{
	int r = owner_read_again(ordered, ret);

	return r < 0 ? r : owner_is_unchanged(ordered, ret) ? 0 : -OPEN_OTHER_OWNER;
}

int open_now(int32_t pid, const struct open_order *order, int *ret_fd)
{
	struct open_order of_pid = *order;
	int r = owner_read(pid, &of_pid.owner);

	if (r == 0)
		r = open_by_order(&of_pid, ret_fd);
	return r == -OPEN_OTHER_OWNER ? -EACCES : r;
}

int open_by_order(const struct open_order *order, int *ret_fd)
{
	struct open_order now = *order;
	struct owner after;
	int r;

	if (order->owner.pid == 0)
		return open_kind(order, ret_fd);
	r = read_unchanged(&order->owner, &now.owner);
	if (r == 0)
		r = open_kind(&now, ret_fd);
	if (r < 0)
		return r;
	r = read_unchanged(&order->owner, &after);
	/* The number of another thread than the leader may have been reused. */
	if (r == 0 && after.tid != now.owner.tid)
		r = -ESRCH;
	if (r < 0)
		close_fd(ret_fd);
	return r;
}
