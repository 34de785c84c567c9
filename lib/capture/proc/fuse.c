#include "lib/capture/proc/fuse.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/util.h"

/*
 * Limit of each of the two files: enough for 6,000 mappings. Reading takes 0.8 us for each mapping
 * on a slow machine, 5 ms for each file.
 */
#define FILE_BYTES_MAX (512 * 1024)

/*
 * The most FUSE mounts that are distinguished. A process usually sees a handful, or one for each
 * container.
 */
#define DEVICES_MAX 256

struct device {
	unsigned long major, minor;
};

struct devices {
	struct device list[DEVICES_MAX];
	size_t n;
};

/*
 * Calls line() for each line until line() returns false. Returns false then, or if the file cannot
 * be read to its end.
 */
static bool each_line(int dir_fd, const char *name,
		      bool (*line)(const char *text, struct devices *d), struct devices *d)
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
	while (bytes < FILE_BYTES_MAX && (n = getline(&text, &size, file)) > 0 && line(text, d))
		bytes += (size_t)n;
	good = n < 0 && ferror(file) == 0;
	free(text);
	(void)fclose(file);
	return good;
}

/* Reads the device in field n, counted from 0. Its numbers have this base. */
static struct device device_in(const char *text, unsigned int n, int base)
{
	struct device ret;
	char *end;

	while (n-- > 0) {
		text += strcspn(text, " ");
		text += strspn(text, " ");
	}
	ret.major = strtoul(text, &end, base);
	ret.minor = *end == ':' ? strtoul(end + 1, NULL, base) : 0;
	return ret;
}

/*
 * Handles a line of mountinfo. The third field is the device, and the first one after a hyphen is
 * the type: "fuse", "fuse.NAME" or "fuseblk" (proc_pid_mountinfo(5)). The type fusectl, which most
 * machines have mounted, is implemented by the kernel itself.
 */
static bool note_mount(const char *text, struct devices *d)
{
	const char *type = strstr(text, " - fuse");

	if (type == NULL || strncmp(type, " - fusectl ", strlen(" - fusectl ")) == 0)
		return true;
	if (d->n == DEVICES_MAX)
		return false;
	d->list[d->n++] = device_in(text, 2, 10);
	return true;
}

/*
 * Handles a line of maps: range, rights, offset, device, inode, name (proc_pid_maps(5)). Returns
 * false if its device is one of d.
 */
static bool is_of_none(const char *text, struct devices *d)
{
	const struct device device = device_in(text, 3, 16);

	for (size_t i = 0; i < d->n; i++)
		if (d->list[i].major == device.major && d->list[i].minor == device.minor)
			return false;
	return true;
}

bool fuse_is_mapped(int proc_fd)
{
	struct devices d = {.n = 0};

	return !each_line(proc_fd, "mountinfo", note_mount, &d) ||
	       (d.n > 0 && !each_line(proc_fd, "maps", is_of_none, &d));
}
