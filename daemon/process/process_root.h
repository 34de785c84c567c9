/*
 * Opens files of a process as the process sees them: by a path in the root directory of the process
 * (a container's, for instance), or by one of its mappings. daemon/process/open.h uses this module
 * for debug files and perf maps, and for ELF files that cannot be opened through
 * /proc/PID/map_files.
 *
 * The parameter `owner` (daemon/process/owner.h) names the process and its rights. A path is
 * resolved below /proc/TID/root, with owner->tid, and no link leads out of there. The process still
 * chooses which file is found, so the file is opened with the rights of owner. The caller
 * - reads the owner before the call;
 * - reads the owner again after the call, and closes the file if the owner has changed;
 * - gives the file only to a process that has no more rights than the owner.
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
 * Opens the debug file with this build-id below /usr/lib/debug: first in the root of this process
 * and with its rights, then in the root of the owner's process with the owner's rights. build_id
 * has at least 4 lower-case hex digits.
 */
must_check int process_root_open_debug(const struct owner *owner, const char *build_id,
				       int *ret_fd);

/*
 * Opens the debug file of the program file at path, an absolute path in the root of the process.
 * name, without a slash, is the name in the section .gnu_debuglink of the program file. Tries three
 * places in this order, here for path /usr/bin/ls and name ls.debug:
 *	/usr/bin/ls.debug, /usr/bin/.debug/ls.debug, /usr/lib/debug/usr/bin/ls.debug
 * Returns -ENOENT if none of them can be opened.
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
 * Opens the file of mapping m: by m->path, or, if that is not the mapped file, by the link
 * /proc/PID/exe. Returns -ENOENT if neither is the mapped file.
 *
 * A file counts as the mapped file if it is regular and has the inode of the mapping, and if one of
 * these holds:
 * - It has the device of the mapping.
 * - It has the same bytes as the first 64 KiB of the mapping (as far as the file reaches). Reason:
 *   on overlayfs and btrfs fstat(2) reports another device than maps.
 */
must_check int process_mapping_open(const struct owner *owner, const struct process_mapping *m,
				    int *ret_fd);

/*
 * The most entries of the two functions below. The broker sends unwind the entries of
 * process_mapped_files(). unwind requests the files of further mappings one by one
 * (FILE_KIND_IMAGE).
 */
#define PROCESS_MAPPED_FILES_MAX 1024

/*
 * Writes an entry to ret for each executable mapping of a file, in the order of /proc/PID/maps. A
 * file with several such mappings has several entries. maps is a stream at the beginning of the
 * text of /proc/PID/maps. Leaves out a mapping whose link in /proc/PID/map_files cannot be
 * followed. Stops when ret is full. Returns the number of entries, or -EIO if maps cannot be read.
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
