/*
 * Opens or copies one file of a target for unwind, or a file that the configuration names.
 * The broker's helper process (daemon/broker/files/files.h) carries out each order by this
 * module, since every call here can hang.
 */
#ifndef DAEMON_PROCESS_OPEN_H
#define DAEMON_PROCESS_OPEN_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/msg/sizes.h"
#include "lib/base/util.h"

/* The content of a checked msg_file_request, for process pid; 0: no process. */
struct open_order {
	int32_t pid;
	uint32_t kind; /* enum file_kind */
	uint64_t start, end;
	bool is_whole;		 /* FILE_KIND_IMAGE: fail, rather than copy the mapped bytes */
	char name[MSG_NAME_MAX]; /* FILE_KIND_PID_FILE, FILE_KIND_EXE_LINK: a path */
};

/* The largest copy: a reader accepts no more. */
#define OPEN_COPY_MAX (64u << 20)
/* How much is copied of a pid file: a number, blanks around it, and the end of the line. */
#define OPEN_PID_FILE_MAX 32

/*
 * Carries out the order. Returns 0 and a descriptor that is open for reading and at its
 * start: a regular file, or a memfd with a copy. Or returns -errno.
 */
must_check int open_for(const struct open_order *order, int *ret_fd);

#endif
