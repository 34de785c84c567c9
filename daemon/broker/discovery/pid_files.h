/*
 * The pid files of the configuration: which process each of them names, read
 * anew once a second.
 *
 * A pid file is where an administrator says, and may lie in a file system whose
 * server is a user's process (FUSE), or far away (NFS): opening, reading and
 * closing it may hang for as long as that likes. So daemon/broker/files/files.h does it, and
 * the answer comes later. A file that hung is told of in one line, keeps the
 * answer that it has, and is left alone until its reader is free again, and for
 * PID_FILES_HUNG_NS at least: there is one that hangs for each, at most.
 */
#ifndef DAEMON_BROKER_DISCOVERY_PID_FILES_H
#define DAEMON_BROKER_DISCOVERY_PID_FILES_H

#include "daemon/broker/files/files.h"
#include "daemon/config/config.h"

#define PID_FILES_HUNG_NS (60 * NS_PER_SEC)

struct pid_files;

/* A file names this process, 0: none any more; it named that one before. */
typedef void (*pid_files_fn)(void *ctx, int32_t pid, int32_t before);

must_check int pid_files_new(struct files *files, pid_files_fn fn, void *ctx,
			     struct pid_files **ret);
/* Takes NULL. Before files_free. */
void pid_files_free(struct pid_files *p);

/*
 * By this configuration; what is known of a file that was in the last one
 * stays, and one that hung is tried again. Returns 0, or -ENOMEM, then there
 * are none.
 */
must_check int pid_files_by(struct pid_files *p, const struct config *config);

/* Asks for each of them, where it is not asked for yet; fn is called later. */
void pid_files_read(struct pid_files *p, uint64_t now_ns);

/* By the last answer. 0: none, or not known yet. */
int32_t pid_files_pid(const struct pid_files *p, const char *path);

/* A child that nobody else knows has ended: it may be a reader that hung. */
void pid_files_reaped(struct pid_files *p, int32_t pid);

#endif
