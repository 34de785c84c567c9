/*
 * What the helper of files.h does for one order: open or copy a file of a
 * target. Runs in the helper: every call here may hang.
 */
#ifndef DAEMON_PROCESS_OPEN_H
#define DAEMON_PROCESS_OPEN_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/msg/sizes.h"
#include "lib/base/util.h"

/* A checked msg_file_request, and the process it is about; 0: none. */
struct open_order {
	int32_t pid;
	uint32_t kind; /* enum file_kind */
	uint64_t start, end;
	bool is_whole;		 /* FILE_KIND_IMAGE: the file, or an error, and no copy of what
				    is mapped of it */
	char name[MSG_NAME_MAX]; /* FILE_KIND_PID_FILE, _EXE_LINK: a path */
};

/* Copies are bounded by what the reader takes. */
#define OPEN_COPY_MAX (64u << 20)
/* A number, blanks around it, and the end of its line. */
#define OPEN_PID_FILE_MAX 32

/*
 * Returns 0 and a descriptor open for reading: a regular file, or a memfd with
 * a copy, at its start. Or a negative errno.
 */
must_check int open_for(const struct open_order *order, int *ret_fd);

#endif
