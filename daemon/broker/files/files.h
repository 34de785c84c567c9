/*
 * Opens files for unwind processes, which may not open files themselves. Also reads files for the
 * broker, if reading may hang. Discovery has a struct files, and so a helper, of its own.
 *
 * Reading the memory of a profiled process, or opening a file that the process has mapped, can hang
 * for as long as the process wants (FUSE, userfaultfd). Therefore the broker has a helper: a fork
 * of itself that handles one request at a time. The broker kills the helper if a request takes
 * longer than FILES_TIMEOUT_MS while the helper sleeps, or longer than FILES_BUSY_MS while the
 * helper is runnable (on a loaded machine, or with a large file). The broker itself never waits.
 */
#ifndef DAEMON_BROKER_FILES_FILES_H
#define DAEMON_BROKER_FILES_FILES_H

#include <stdbool.h>
#include <sys/resource.h>

#include "daemon/broker/files/file_label.h"
#include "daemon/msg/msg_unwind.h"
#include "daemon/process/owner.h"
#include "lib/base/loop.h"

#define FILES_TIMEOUT_MS 1000
#define FILES_BUSY_MS	 10000

struct files;

/*
 * Handles the answer to a request. After success error is 0, fd is open and belongs to the callee,
 * and file is the label of the file, valid during the call. Otherwise fd is -1, file is NULL, and
 * error is a negative errno, with these meanings besides the usual ones:
 * - -ETIMEDOUT: the helper hung and was killed;
 * - -EIO: the helper died;
 * - -ESRCH: the process has ended;
 * - -EACCES: the process has another owner or program (files_request).
 */
typedef void (*files_fn)(void *ctx, const struct msg_file_request *request, int error, int fd,
			 const struct file_label *file);

/*
 * Makes the queue of requests. The helper is started with the first request. loop must outlive
 * *ret. Returns 0 or -ENOMEM.
 */
must_check int files_new(struct loop *loop, struct files **ret);
/* Kills the helper and drops the requests that have no answer; fn is not called. f may be NULL. */
void files_free(struct files *f);

/*
 * Queues the opening of a file of a process. request says which file. owner is the owner of the
 * process, which the caller has read just now. pidfd refers to the process; it is duplicated. If
 * the process has another owner when the file is opened, or has executed another program
 * (owner.program), the answer is -EACCES. no_memory: the helper copies no memory of the process. So
 * FILE_KIND_IMAGE fails if the mapped file cannot be opened, and the answer to FILE_KIND_PROGRAM
 * has no environment. The request waits while descriptors or processes are short.
 *
 * fn is called later, by files_check() or by the loop, with a copy of request. ctx is passed to fn
 * and identifies the request: a ctx can have one request at a time. Returns 0, or
 * - -EINVAL: file_request_check() does not return FILE_REQUEST_VALID, pidfd is negative, or an
 *   earlier request with this ctx has no answer yet;
 * - -ENOMEM, or a negative errno of fcntl(2).
 */
must_check int files_request(struct files *f, const struct msg_file_request *request,
			     const struct owner *owner, int pidfd, bool no_memory, files_fn fn,
			     void *ctx);

/*
 * As files_request(), but for the kinds of files that only the broker itself requests of a process:
 * FILE_KIND_CODE_LIST, FILE_KIND_CODE, FILE_KIND_LEAK_OPTIONS and FILE_KIND_ENVIRON. Returns
 * -EINVAL for another kind.
 */
must_check int files_request_own(struct files *f, const struct msg_file_request *request,
				 const struct owner *owner, int pidfd, files_fn fn, void *ctx);

/*
 * Queues a request without a process, for a path of the configuration. The answer is a memfd of
 * text: for FILE_KIND_PID_FILE the beginning of a pid file, for FILE_KIND_EXE_LINK the path with
 * all symbolic links resolved. Returns 0; -EINVAL if path has MSG_NAME_MAX bytes or more, or an
 * earlier request with this ctx has no answer yet; or -ENOMEM.
 */
must_check int files_request_path(struct files *f, enum file_kind kind, const char *path,
				  files_fn fn, void *ctx);

/*
 * Handles the end of process pid, a child of the broker that is no struct child (children/): a
 * helper, or a child of daemon/common/drain.h. Adds usage, in both cases, to files_used_ns().
 */
void files_reaped(struct files *f, int32_t pid, const struct rusage *usage);

/*
 * Returns the processor time of all helpers so far, in ns, the living one included, and the times
 * that files_reaped() has added. It never decreases.
 */
uint64_t files_used_ns(struct files *f);

/*
 * Counts a file that the caller refuses because the process has another owner, or runs another
 * program, than before. Do not call it after -EACCES: this module counts the helper's refusals.
 */
void files_count_other_owner(struct files *f);
/* Returns the number of such refusals, of callers and of the helper together. */
uint64_t files_other_owner(const struct files *f);

/*
 * Cancels the request with this ctx, if it has no answer yet: fn is not called. ctx can have a new
 * request then.
 */
void files_forget(struct files *f, const void *ctx);

/*
 * To be called at every turn, after all functions that make requests: passes requests to the
 * helper, and kills a helper that hangs.
 */
void files_check(struct files *f);

#endif
