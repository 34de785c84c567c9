/*
 * The file of a mapping by its name in /proc/PID/maps: where the kernel does
 * not hand out what is mapped (map_files), and for what lies beside it. Runs in
 * the helper of files.h: every call here may hang.
 *
 * The kernel names files as this process would: what a target that has changed
 * its root calls /lib/libc.so.6 may be /srv/jail/lib/libc.so.6 here. A name is
 * followed in the target's own root only (rooted.h).
 */
#ifndef DAEMON_PROCESS_MAPPED_H
#define DAEMON_PROCESS_MAPPED_H

#include <limits.h>
#include <stdio.h>
#include <sys/types.h>

#include "lib/base/file_identity.h"
#include "lib/base/util.h"

struct mapped {
	int32_t pid;
	uint64_t start, end;
	uint64_t offset; /* in the file */
	dev_t device;
	ino_t inode;
	char path[PATH_MAX]; /* in the target's root; " (deleted)" is left */
};

/*
 * What maps says of [start, end). Returns 0, -ENOENT if no file is mapped just
 * there, or one outside of the target's root, -errno.
 */
must_check int mapped_find(int32_t pid, uint64_t start, uint64_t end, struct mapped *ret);

/*
 * Opens the file, by its path or as the target's executable, with the rights of
 * the target's user: it was his choice what is mapped. It has the inode
 * of the mapping and its device, or what is mapped in it: overlayfs and btrfs
 * tell another device of a file than maps does. Returns 0 or a negative errno.
 */
must_check int mapped_open(const struct mapped *m, int *ret_fd);

/*
 * Of one process so many mappings have their files told; those of the others
 * are asked for.
 */
#define MAPPED_FILES_MAX 1024

/*
 * Who the files of the executable mappings in the text maps are, as far as the
 * kernel tells (map_files). Returns how many, or -errno.
 */
must_check int mapped_files(int32_t pid, FILE *maps, struct mapped_file ret[MAPPED_FILES_MAX]);

#endif
