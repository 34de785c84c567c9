/*
 * Opens or copies one file of a process for unwind, or a file that the configuration names. Every
 * call can hang if a file system does not answer. So the broker leaves the calls to a helper
 * process, and sends it orders: struct open_order (daemon/broker/files/files.h).
 */
#ifndef DAEMON_PROCESS_OPEN_H
#define DAEMON_PROCESS_OPEN_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/msg/msg.h"
#include "daemon/process/owner.h"
#include "lib/base/util.h"

/*
 * A file to open. If unwind has asked for the file, kind, start, end and name are those of its
 * msg_file_request (daemon/msg/msg_unwind.h), which the caller has checked
 * (daemon/msg/file_request.h).
 */
struct open_order {
	/* The owner of the process, as read last; owner.pid 0: a file of the configuration. */
	struct owner owner;
	uint32_t kind;	     /* enum file_kind */
	uint64_t start, end; /* a mapping: FILE_KIND_IMAGE, _CODE and _DEBUG_LINK */
	/*
	 * If true, FILE_KIND_IMAGE fails if the mapped file cannot be opened, and copies no mapped
	 * bytes in its place; FILE_KIND_PROGRAM has no environment. Other kinds stay the same.
	 */
	bool no_memory;
	/*
	 * FILE_KIND_DEBUG: a build-id; FILE_KIND_DEBUG_LINK: the name of a file;
	 * FILE_KIND_PID_FILE and FILE_KIND_EXE_LINK: a path.
	 */
	char name[MSG_NAME_MAX];
};

/* The name of the memfd of a copy. */
#define OPEN_COPY_NAME "copy"
/*
 * The most bytes of a copy, because a copy takes memory. A copy of mapped bytes is cut off at this
 * size. A file of a FUSE file system is copied, too; if it is larger, the call returns -EFBIG. The
 * files in /proc have limits of their own (daemon/msg/msg_unwind.h).
 */
#define OPEN_COPY_MAX (64u << 20)
/* A copy of a pid file is cut off at this size: it begins with a number and a line end. */
#define OPEN_PID_FILE_MAX 32

/*
 * The error if the process no longer has the owner of the order, or if it has executed a program
 * since the owner was read. open_by_order() checks both before and after it opens the file. The
 * value is not an errno of open(2) or read(2), so that the caller can tell it from their errors.
 */
#define OPEN_OTHER_OWNER EOWNERDEAD

/*
 * Opens the file of the order. A path that the process chose is opened with the rights of
 * order->owner. A file of the process in /proc is opened with the rights of this process; if these
 * do not suffice, some kinds are tried with the rights of the owner (act_as_open()). A path of the
 * configuration is opened with the rights of this process.
 *
 * *ret_fd, which the caller owns, is a regular file or a memfd with a copy, open for reading at
 * offset 0. For FILE_KIND_EXE_LINK the memfd has the path with its symbolic links resolved. Returns
 * 0; -OPEN_OTHER_OWNER; -ESRCH if the process has ended; -ENXIO if the file is not a regular one;
 * -EREMOTE if a pid file is on a network or FUSE file system; or another -errno.
 */
must_check int open_by_order(const struct open_order *order, int *ret_fd);

/*
 * Reads the owner of process pid, and opens the file of the order for this owner; order->owner is
 * not used. For a caller that has read nothing of the process before. Returns what open_by_order()
 * returns, but -EACCES instead of -OPEN_OTHER_OWNER.
 */
must_check int open_now(int32_t pid, const struct open_order *order, int *ret_fd);

#endif
