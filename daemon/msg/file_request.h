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
	 * No file can have this name or range. Unwind does not send the request. The broker
	 * answers the request with EINVAL and counts it.
	 */
	FILE_REQUEST_REFUSED,
	/* A kind that unwind never asks for. The process was taken over; the broker kills it. */
	FILE_REQUEST_VIOLATION,
};

/* Checks the kind, and the fields that requests of this kind have. The target is not checked. */
enum file_request_verdict file_request_check(const struct msg_file_request *request);

#endif
