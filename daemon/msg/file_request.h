/*
 * Checks MSG_FILE_REQUEST, by which unwind asks the broker for files. Both sides use the same
 * check: unwind before it sends a request, the broker when a request arrives.
 */
#ifndef DAEMON_MSG_FILE_REQUEST_H
#define DAEMON_MSG_FILE_REQUEST_H

#include "daemon/msg/msg_unwind.h"

enum file_request_verdict {
	FILE_REQUEST_VALID, /* the broker looks for the file */
	/*
	 * No file can have this name or range. Unwind does not send such a request; the broker
	 * answers it with EINVAL and counts it.
	 */
	FILE_REQUEST_REFUSED,
	/* Unwind never makes such a request: the process was taken over, and the broker ends it. */
	FILE_REQUEST_VIOLATION,
};

/* Reads the kind, and the fields that requests of this kind have. */
enum file_request_verdict file_request_check(const struct msg_file_request *request);

#endif
