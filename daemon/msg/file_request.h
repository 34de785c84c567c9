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
	 * The name cannot be that of a file, or the range of addresses cannot be that of a mapping.
	 * Unwind does not send such a request. If the broker gets one, it answers with EINVAL and
	 * counts the request.
	 */
	FILE_REQUEST_REFUSED,
	/* The kind is one that unwind never asks for. The broker kills the unwind process. */
	FILE_REQUEST_VIOLATION,
};

/* Checks kind and the fields that this kind uses. Does not check target, which the caller does. */
enum file_request_verdict file_request_check(const struct msg_file_request *request);

#endif
