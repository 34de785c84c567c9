/*
 * Opens files of a process as the process sees them: by a path in the root directory of the process
 * (a container's, for instance), or by one of its mappings. daemon/process/open.h uses this module
 * for debug files and perf maps, and for ELF files that cannot be opened through
 * /proc/PID/map_files.
 *
 * A path is resolved below /proc/PID/root, and no link leads out of there. The target still chooses
 * which file is found. So the file is opened with the rights of owner, the owner of the process
 * (daemon/process/owner.h). The caller has read the owner before the call, reads it again before it
 * hands out the file, and gives the file only to a process with no more rights than the target.
 *
 * Every call can hang if a file system does not answer: the broker leaves all of them to a helper
 * process (daemon/broker/files/files.h).
 *
 * Unless a function says otherwise, it returns 0 or -errno. The caller owns *ret_fd, which is open
 * for reading.
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

/* The flags for opening a path of a target: it may lead to a FIFO, so open(2) must not wait. */
#define PROCESS_ROOT_OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

/*
 * Opens the file of fd, a descriptor with O_PATH, for reading. If it is not a regular file, returns
 * -ENXIO and opens nothing, because opening a device can have effects.
 */
must_check int process_root_open_regular(int fd, int *ret_fd);

/*
 * Opens the debug file with this build-id below /usr/lib/debug: that of the host, or, if the host
 * has none, that in the root of the process. build_id has at least 4 lower-case hex digits.
 */
must_check int process_root_open_debug(const struct owner *owner, const char *build_id,
				       int *ret_fd);

/*
 * Opens the debug file of the program file at path, an absolute path in the root of the process.
 * name, without a slash, is the name in the section .gnu_debuglink of the program file. Looks
 * beside the program file, in .debug/ beside it, and in the same directory below /usr/lib/debug.
 * Returns -ENOENT if there is none.
 */
must_check int process_root_open_debug_link(const struct owner *owner, const char *path,
					    const char *name, int *ret_fd);

/*
 * Opens /tmp/perf-PID.map in the root of the process, where PID is the pid in the pid namespace of
 * the process. Follows no symbolic link, and returns -EPERM if the file does not belong to the
 * owner.
 */
must_check int process_root_open_perf_map(const struct owner *owner, int *ret_fd);

/* A mapping of a file: the fields of a line of /proc/PID/maps. */
struct process_mapping {
	uint64_t start, end;
	uint64_t offset; /* in the file */
	dev_t device;
	ino_t inode;
	char path[PATH_MAX]; /* in the root of the process; for a deleted file with " (deleted)" */
};

/*
 * Finds the mapping at exactly [start, end) in /proc/PID/maps. Returns -ENOENT if no file is mapped
 * there, or if the file lies outside of the root of the process: it has no path there.
 */
must_check int process_mapping_find(int32_t pid, uint64_t start, uint64_t end,
				    struct process_mapping *ret);

/*
 * Returns true if exactly [start, end) is an executable mapping of a file, or the vDSO. The caller
 * may copy such a range, because it has code and no secrets of the process.
 */
bool process_mapping_is_code(int32_t pid, uint64_t start, uint64_t end);

/*
 * Opens the file of mapping m: first by m->path, then by the link /proc/PID/exe. The opened file
 * is a regular file with the inode and the device of the mapping. overlayfs and btrfs report
 * another device than maps does: then up to 64 KiB of the mapping are compared with the file.
 * Returns -ENOENT if there is no such file.
 */
must_check int process_mapping_open(const struct owner *owner, const struct process_mapping *m,
				    int *ret_fd);

/*
 * The most identities that the broker sends to unwind for one process. unwind requests the files of
 * further mappings one by one (FILE_KIND_IMAGE).
 */
#define PROCESS_MAPPED_FILES_MAX 1024

/*
 * Writes an entry for each executable mapping of a file, in the order of /proc/PID/maps: so a file
 * can have several. maps: a stream of that text, at its begin. Leaves out a mapping whose link in
 * /proc/PID/map_files cannot be followed. Returns the number of identities, or -EIO if maps cannot
 * be read.
 */
must_check int process_mapped_files(int32_t pid, FILE *maps,
				    struct mapped_file ret[PROCESS_MAPPED_FILES_MAX]);

/*
 * A file with code of a process: the first executable mapping of the file, and its identity. The
 * identity is all zeros if this process cannot follow the link in /proc/PID/map_files.
 */
struct process_code_file {
	uint64_t start, end;
	struct file_identity file;
};

/*
 * Lists the files with code of pid, at most PROCESS_MAPPED_FILES_MAX. Executable
 * mappings of one file count once if no executable mapping of another file lies between them.
 * Returns the number of files, or -errno if /proc/PID/maps cannot be read.
 */
must_check int process_code_files(int32_t pid,
				  struct process_code_file ret[PROCESS_MAPPED_FILES_MAX]);

#endif
