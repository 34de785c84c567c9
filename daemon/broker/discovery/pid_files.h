/*
 * The pid files that the configuration names (key pid_file): which process each of them names.
 * Discovery reads them once a second.
 *
 * Pid files are read from local file systems only. A file on FUSE, NFS or the like is left out: it
 * is not read again before a reload of the configuration. A log line says so.
 *
 * Reading a pid file can hang, so a helper (daemon/broker/files/files.h) reads it, and the answer
 * comes later. If the helper hangs, a line is logged, the file keeps its last pid, and the next
 * reading is after PID_FILES_RETRY_NS. After PID_FILES_TIMEOUTS_MAX readings in a row that hang,
 * the file is left out, so that at most this number of helpers hang for one file.
 */
#ifndef DAEMON_BROKER_DISCOVERY_PID_FILES_H
#define DAEMON_BROKER_DISCOVERY_PID_FILES_H

#include "daemon/broker/files/files.h"
#include "daemon/config/config.h"

#define PID_FILES_RETRY_NS     (60 * NS_PER_SEC)
#define PID_FILES_TIMEOUTS_MAX 3

struct pid_files;

/*
 * Called after each reading that has not hung. pid: the process that the file names now; 0: the
 * file names none, or cannot be read. before: the pid that the previous reading found; 0: none.
 */
typedef void (*pid_files_fn)(void *ctx, int32_t pid, int32_t before);

/*
 * Makes an empty list that calls fn with ctx for each reading. files must outlive *ret. Returns 0
 * or -ENOMEM.
 */
must_check int pid_files_new(struct files *files, pid_files_fn fn, void *ctx,
			     struct pid_files **ret);
/* Call it before files_free(). p may be NULL. */
void pid_files_free(struct pid_files *p);

/*
 * Replaces the list of files by those of the configuration. A file that was in the list before
 * keeps its pid; one that was left out is tried again. Returns 0, or -ENOMEM: then the list is
 * empty.
 */
must_check int pid_files_configure(struct pid_files *p, const struct config *config);

/*
 * Requests a reading of each file that is not left out, not being read, and not waiting after a
 * timeout. fn is called later. now_ns: CLOCK_MONOTONIC. Call it once a second.
 */
void pid_files_read(struct pid_files *p, uint64_t now_ns);

/*
 * Returns the pid that the file at path names, by its last reading. 0: no pid, no such file in
 * the list, or not read yet.
 */
int32_t pid_files_pid(const struct pid_files *p, const char *path);

#endif
