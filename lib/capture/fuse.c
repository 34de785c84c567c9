#include "lib/capture/fuse.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/util.h"

/* 0.8 us a mapping, 14 a descriptor, on a slow machine: 5 ms each. */
#define FILE_BYTES_MAX (512 * 1024)
#define FDS_MAX	       256

/* File systems that a process has files of mapped: a handful. */
#define DEVICES_MAX 32

struct device {
	unsigned long major, minor;
	bool known; /* its file system is not FUSE */
};

struct devices {
	struct device list[DEVICES_MAX];
	size_t n;
};

/* Calls line for each, until it returns false. False then, or on an error. */
static bool each_line(int dir_fd, const char *name,
		      bool (*line)(const char *text, struct devices *d),
		      struct devices *d)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	size_t size = 0, bytes = 0;
	char *text = NULL;
	bool good;
	ssize_t n = 0;

	if (file == NULL) {
		close_fd(&fd);
		return false;
	}
	while (bytes < FILE_BYTES_MAX &&
	       (n = getline(&text, &size, file)) > 0 && line(text, d))
		bytes += (size_t)n;
	good = n < 0 && ferror(file) == 0;
	free(text);
	(void)fclose(file);
	return good;
}

/* The text behind so many fields, or "". */
static const char *after_fields(const char *text, unsigned int n)
{
	while (n-- > 0) {
		text += strcspn(text, " ");
		text += strspn(text, " ");
	}
	return text;
}

static void read_device(const char *text, int base, struct device *ret)
{
	char *end;

	*ret = (struct device){.major = strtoul(text, &end, base)};
	if (*end == ':')
		ret->minor = strtoul(end + 1, NULL, base);
}

static struct device *find_device(struct devices *d, const struct device *is)
{
	for (size_t i = 0; i < d->n; i++)
		if (d->list[i].major == is->major &&
		    d->list[i].minor == is->minor)
			return &d->list[i];
	return NULL;
}

/*
 * Files that the kernel makes for memory: the mounts that they lie in are its
 * own. All others have a path, or one of a file system that was unmounted.
 */
static bool is_kernels_own(const char *name)
{
	static const char *const starts[] = {
		"/memfd:",
		"/SYSV",
		"/dev/zero (deleted)",
		"/anon_hugepage (deleted)",
		"/[aio] (deleted)",
		"/dmabuf:",
		"/drm mm object (deleted)",
		"/i915 (deleted)",
	};

	if (name[0] != '/')
		return true;
	for (size_t i = 0; i < array_size(starts); i++)
		if (strncmp(name, starts[i], strlen(starts[i])) == 0)
			return true;
	return false;
}

/* Of maps: range, rights, offset, device, inode, name (proc_pid_maps(5)). */
static bool note_mapping(const char *text, struct devices *d)
{
	const char *at = after_fields(text, 3);
	struct device device;

	if (strncmp(at, "00:00 ", 6) == 0)
		return true;
	read_device(at, 16, &device);
	if (find_device(d, &device) != NULL ||
	    is_kernels_own(after_fields(at, 2)))
		return true;
	if (d->n == DEVICES_MAX)
		return false;
	d->list[d->n++] = device;
	return true;
}

/*
 * Of mountinfo: the third field is the device, and the first behind a hyphen
 * the type: "fuse", "fuse.NAME", "fuseblk" (proc_pid_mountinfo(5)). False if it
 * is FUSE and mapped.
 */
static bool note_mount(const char *text, struct devices *d)
{
	const char *type = strstr(text, " - ");
	struct device device, *found;

	read_device(after_fields(text, 2), 10, &device);
	found = find_device(d, &device);
	if (found == NULL || type == NULL)
		return true;
	found->known = true;
	return strncmp(type + strlen(" - "), "fuse", 4) != 0;
}

/* A disk that is mounted nowhere in sight is a disk. */
static bool are_known(const struct devices *d)
{
	for (size_t i = 0; i < d->n; i++)
		if (!d->list[i].known && d->list[i].major == 0)
			return false;
	return true;
}

/*
 * What is mounted is looked up where the process is, and if it is not there
 * (of overlayfs the files below were mapped before Linux 6.8), where we are.
 */
static bool maps_none(int proc_fd)
{
	struct devices d = {.n = 0};

	if (!each_line(proc_fd, "maps", note_mapping, &d))
		return false;
	if (d.n == 0)
		return true;
	if (!each_line(proc_fd, "mountinfo", note_mount, &d))
		return false;
	return are_known(&d) ||
	       (each_line(AT_FDCWD, "/proc/self/mountinfo", note_mount, &d) &&
		are_known(&d));
}

static bool is_fuse_device(int dir_fd, const char *name)
{
	char link[32];
	ssize_t n = readlinkat(dir_fd, name, link, sizeof(link) - 1);

	if (n < 0)
		return false;
	link[n] = '\0';
	return strcmp(link, "/dev/fuse") == 0;
}

/* A server opens it to mount: it has one of the first numbers. */
static bool serves_none(int proc_fd)
{
	int fd = openat(proc_fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	bool none = true;

	if (dir == NULL) {
		close_fd(&fd);
		return false;
	}
	for (int i = 0; none && i < FDS_MAX + 2; i++) {
		entry = readdir(dir);
		if (entry == NULL)
			break;
		none = !is_fuse_device(fd, entry->d_name);
	}
	(void)closedir(dir);
	return none;
}

bool fuse_is_near(int proc_fd)
{
	return !serves_none(proc_fd) || !maps_none(proc_fd);
}
