/*
 * Opens files for unwind processes, which may not open files, and reads files for the broker if
 * reading may hang.
 *
 * Reading a target's memory, or opening a file that it has mapped, can hang for as long as the
 * target wants (FUSE, userfaultfd). Therefore a helper does it: a fork of the broker that
 * handles one request at a time. The helper is killed if it sleeps in a request for longer than
 * FILES_TIMEOUT_MS, or is runnable in one (a loaded machine, a large file) for longer than
 * FILES_BUSY_MS. The broker itself never waits.
 */
#ifndef DAEMON_BROKER_FILES_FILES_H
#define DAEMON_BROKER_FILES_FILES_H

#include <sys/resource.h>

#include "daemon/broker/files/file_shown.h"
#include "daemon/msg/msg_unwind.h"
#include "lib/base/loop.h"

#define FILES_TIMEOUT_MS 1000
#define FILES_BUSY_MS	 10000

struct files;

/*
 * The answer to a request: error 0, a descriptor, which is the callee's now, and the description
 * of the file; or a negative errno, -1 and NULL. -ETIMEDOUT: the helper hung and was killed.
 * file is valid during the call.
 */
typedef void (*files_fn)(void *ctx, const struct msg_file_request *request, int error, int fd,
			 const struct file_shown *file);

/* Starts no helper yet. loop must outlive *ret. Returns 0 or -ENOMEM. */
must_check int files_new(struct loop *loop, struct files **ret);
/* Kills the helper and drops the requests without an answer. f may be NULL. */
void files_free(struct files *f);

/*
 * Queues the opening of what request names, for process pid. pidfd pins the process and is
 * duplicated. fn is called by files_check() or by the loop, with a copy of request, and never
 * from within this call. The request waits while descriptors or processes are short. Returns 0;
 * -EINVAL if file_request_check() does not say FILE_REQUEST_VALID or ctx has a request without
 * an answer; -ENOMEM; or an error of the duplication.
 */
must_check int files_request(struct files *f, const struct msg_file_request *request, int32_t pid,
			     int pidfd, files_fn fn, void *ctx);

/*
 * Queues a request without a process: FILE_KIND_PID_FILE (the beginning of a pid file) or
 * FILE_KIND_EXE_LINK. path comes from the configuration and is shorter than MSG_NAME_MAX.
 * Returns as files_request().
 */
must_check int files_request_path(struct files *f, enum file_kind kind, const char *path,
				  files_fn fn, void *ctx);

/*
 * A child of the broker that no other part started has been reaped, with this usage: adds it to
 * the processor time of the helpers.
 */
void files_reaped(struct files *f, int32_t pid, const struct rusage *usage);

/* Returns the processor time of all helpers so far, in ns. */
uint64_t files_used_ns(const struct files *f);

/* Cancels the requests with this ctx: fn is not called for them. */
void files_forget(struct files *f, const void *ctx);

/*
 * To be called at every turn, after all functions that make requests: passes requests to the
 * helper, and kills a helper that hangs.
 */
void files_check(struct files *f);

#endif
