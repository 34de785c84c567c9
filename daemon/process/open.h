/*
 * Opens or copies one file of a target for unwind, or a file that the configuration names.
 * The broker's helper process (daemon/broker/files/files.h) carries out each order by this
 * module, since every call here can hang.
 */
#ifndef DAEMON_PROCESS_OPEN_H
#define DAEMON_PROCESS_OPEN_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/msg/msg.h"
#include "daemon/process/owner.h"
#include "lib/base/util.h"

/*
 * A file to open. For the files of a process, the fields are those of the msg_file_request that
 * asks for the file (daemon/msg/msg_unwind.h); the caller has checked them
 * (daemon/msg/file_request.h).
 */
struct open_order {
	/* The owner of the process, as read last; pid 0: a file of the configuration. */
	struct owner owner;
	uint32_t kind;	     /* enum file_kind */
	uint64_t start, end; /* the addresses of a mapping of the process */
	/* If true, no memory is copied: FILE_KIND_IMAGE fails; FILE_KIND_PROGRAM has no
	 * environment. */
	bool no_memory;
	/*
	 * FILE_KIND_DEBUG: a build-id; FILE_KIND_DEBUG_LINK: the name of a file;
	 * FILE_KIND_PID_FILE and FILE_KIND_EXE_LINK: a path.
	 */
	char name[MSG_NAME_MAX];
};

/*
 * The most bytes of a copy, which takes memory. A copy of mapped bytes, or of a file in /proc, is
 * cut off at this size. A larger file of a FUSE file system is refused with -EFBIG.
 */
#define OPEN_COPY_MAX (64u << 20)
/* A copy of a pid file is cut off at this size: a number, blanks, and the end of the line. */
#define OPEN_PID_FILE_MAX 32

/*
 * Checked before and after the file is opened: the process no longer has the owner of the order, or
 * runs another program than when that owner was read. No system call that opens or reads a file
 * fails with this error.
 */
#define OPEN_OTHER_OWNER EOWNERDEAD

/*
 * Carries out the order, with the rights of its owner. Returns 0, -OPEN_OTHER_OWNER or -errno.
 * *ret_fd, which the caller owns, is open for reading with its offset at the start: a regular file,
 * or a memfd with a copy. For FILE_KIND_EXE_LINK it is a memfd with a text, the path with its
 * symbolic links resolved.
 */
must_check int open_by_order(const struct open_order *order, int *ret_fd);

/*
 * Reads the owner of process pid, and carries out the order for it. For a caller that has read
 * nothing of the process before. Returns -EACCES instead of -OPEN_OTHER_OWNER.
 */
must_check int open_now(int32_t pid, const struct open_order *order, int *ret_fd);

#endif
