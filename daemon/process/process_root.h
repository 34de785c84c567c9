/*
 * Opens files of a process as the process sees them: by a path in the root directory of the process
 * (a container's, for instance), and by one of its mappings. unwind gets ELF files, debug files and
 * perf maps through these functions (daemon/process/open.h), if the kernel does not hand them out
 * by /proc/PID/map_files.
 *
 * A path is resolved below /proc/PID/root, and no link leads out of there. The target still chooses
 * which file is found. So the file is opened with the rights of the process's owner, as the caller
 * has read them (owner.h), and is handed only to a process that has no more rights than the target.
 * The caller knows that thread owner->tid belongs to that owner, and checks this again before it
 * hands out the file.
 *
 * Every call can hang if a file system does not answer: the broker leaves all of them to a helper
 * process (daemon/broker/files/files.h).
 *
 * Functions that return int return 0 or -errno.
 */
#ifndef DAEMON_PROCESS_PROCESS_ROOT_H
#define DAEMON_PROCESS_PROCESS_ROOT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "daemon/process/owner.h"
#include "lib/base/file_identity.h"
#include "lib/base/util.h"

/* For open(2) of a path that may lead to a FIFO or a device: opening it must not wait. */
#define PROCESS_ROOT_OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

/*
 * Opens for reading the file that fd, a descriptor of O_PATH, stands for. Returns -ENXIO,
 * and opens nothing, if that is not a regular file: opening a device can have effects. Does
 * not hang, and every process may call it.
 */
must_check int process_root_open_regular(int fd, int *ret_fd);

/*
 * Opens a debug file by its build-id, at least 4 lower-case hex digits: the file of the host, or,
 * if the host has none, the file in the root of the process.
 */
must_check int process_root_open_debug(const struct owner *owner, const char *build_id,
				       int *ret_fd);

/*
 * Opens a debug file by its name, which has no slash, from the file at path: beside that
 * file, in .debug there, or below /usr/lib/debug.
 */
must_check int process_root_open_debug_link(const struct owner *owner, const char *path,
					    const char *name, int *ret_fd);

/*
 * Opens /tmp/perf-PID.map, with the pid in the target's own namespace. Follows no symbolic
 * link, and returns -EPERM if the file does not belong to the owner.
 */
must_check int process_root_open_perf_map(const struct owner *owner, int *ret_fd);

/* A mapping of a file: the fields of a line of /proc/PID/maps. */
struct process_mapping {
	uint64_t start, end;
	uint64_t offset; /* in the file */
	dev_t device;
	ino_t inode;
	char path[PATH_MAX]; /* in the root of pid; a deleted file's ends with " (deleted)" */
};

/*
 * Finds the mapping at [start, end). Returns -ENOENT if no file is mapped there, or a file
 * outside of the target's root: the kernel names it by a path of this process's root, which
 * the target cannot use.
 */
must_check int process_mapping_find(int32_t pid, uint64_t start, uint64_t end,
				    struct process_mapping *ret);

/*
 * Returns true if exactly [start, end) is an executable mapping of a file, or the vDSO. A copy of
 * such a range has code, and nothing that the process keeps secret.
 */
bool process_mapping_is_code(int32_t pid, uint64_t start, uint64_t end);

/*
 * Opens the mapped file, by its path or as the target's executable. The file has the
 * mapping's inode and device. overlayfs and btrfs report another device than maps does: if
 * the device differs, the file's content must be what is mapped.
 */
must_check int process_mapping_open(const struct owner *owner, const struct process_mapping *m,
				    int *ret_fd);

/*
 * The most identities that the broker sends for one process. unwind requests the files of further
 * mappings one by one (FILE_KIND_IMAGE).
 */
#define PROCESS_MAPPED_FILES_MAX 1024

/*
 * Writes the identities of the files of executable mappings in the text maps. Leaves out a file
 * whose link in /proc/PID/map_files cannot be followed. Returns the number of identities, or -EIO
 * if maps cannot be read.
 */
must_check int process_mapped_files(int32_t pid, FILE *maps,
				    struct mapped_file ret[PROCESS_MAPPED_FILES_MAX]);

/*
 * A file with code of a process: one executable mapping of it, and the identity of the file, which
 * is all zeros if this process may not follow the link in /proc/PID/map_files.
 */
struct process_code_file {
	uint64_t start, end;
	struct file_identity file;
};

/*
 * Lists the files with code of pid, at most PROCESS_MAPPED_FILES_MAX. A file whose executable
 * mappings follow each other is listed once. Returns the number of files, or -errno if maps cannot
 * be read.
 */
must_check int process_code_files(int32_t pid,
				  struct process_code_file ret[PROCESS_MAPPED_FILES_MAX]);

#endif
