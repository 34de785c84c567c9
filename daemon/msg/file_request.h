/*
 * Checks the fields of MSG_FILE_REQUEST, by which unwind asks the broker for files. Both sides
 * use the same check: unwind before it sends a request, the broker when a request arrives.
 */
#ifndef DAEMON_MSG_FILE_REQUEST_H
#define DAEMON_MSG_FILE_REQUEST_H

#include "daemon/msg/msg_unwind.h"

enum file_request_verdict {
	FILE_REQUEST_VALID, /* the broker looks for the file */
	/*
	 * No file can have this name, or no mapping this range of addresses. Unwind does not send
	 * the request. If the broker gets it, the broker answers with EINVAL and counts the
	 * request.
	 */
	FILE_REQUEST_REFUSED,
	/* A kind for which an intact unwind never asks. The broker kills the unwind process. */
	FILE_REQUEST_VIOLATION,
};

/* Checks kind and the fields that this kind uses. Does not check target, which the caller does. */
enum file_request_verdict file_request_check(const struct msg_file_request *request);

#endif
