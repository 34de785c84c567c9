/*
 * Opens files for unwind processes, which may not open any, and reads files for the broker
 * where reading may hang.
 *
 * Reading a target's memory, or opening a file that it maps, can hang for as long as the
 * target likes (FUSE, userfaultfd). So a helper does it: a fork of the broker that handles one
 * request at a time. The helper is killed if it sleeps in a request for longer than
 * FILES_TIMEOUT_MS, or is busy with one (a loaded machine, a large file) for longer than
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
 * The answer: 0 and a descriptor, now the callee's, of file; or an errno, -1
 * and NULL. -ETIMEDOUT: the target made the helper hang.
 */
typedef void (*files_fn)(void *ctx, const struct msg_file_request *request, int error, int fd,
			 const struct file_shown *file);

must_check int files_new(struct loop *loop, struct files **ret);
void files_free(struct files *f); /* takes NULL; pending ones are dropped */

/*
 * Opens what request names, of process pid (pinned by pidfd, which is duplicated).
 * Queues the request and starts nothing: fn is called by files_check or by the
 * loop, with a copy of request, and never from within this call. The request waits
 * as long as descriptors or processes are short. Returns 0, -EINVAL
 * if file_request_check() says something else than FILE_REQUEST_VALID or ctx has a request
 * without an answer, -ENOMEM, or an error of the duplication.
 */
must_check int files_request(struct files *f, const struct msg_file_request *request, int32_t pid,
			     int pidfd, files_fn fn, void *ctx);

/*
 * The same for FILE_KIND_PID_FILE (the beginning of a pid file) and FILE_KIND_EXE_LINK,
 * which no process is pinned for: path is the configuration's, shorter than
 * MSG_NAME_MAX.
 */
must_check int files_request_path(struct files *f, enum file_kind kind, const char *path,
				  files_fn fn, void *ctx);

/*
 * The last helper that was killed because it hung, as long as it is not reaped;
 * 0: there is none. In the kernel it may hang on: see docs/ARCHITECTURE.md.
 */
int32_t files_killed(const struct files *f);

/* A process that is no child of daemon/broker/broker.h has been reaped. */
void files_reaped(struct files *f, int32_t pid, const struct rusage *usage);

/* Processor time of the helpers, those included that are gone, in ns. */
uint64_t files_used_ns(const struct files *f);

/* Requests made with this ctx are no longer of interest. */
void files_forget(struct files *f, const void *ctx);

/*
 * To be called at each turn, after everything that makes requests: gives them
 * to the helper, and kills a helper that hangs.
 */
void files_check(struct files *f);

#endif
