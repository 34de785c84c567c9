/*
 * The rule of MSG_FILE_REQUEST, the question that unwind asks the broker. unwind
 * applies the rule before it sends a question, the broker when one arrives.
 */
#ifndef DAEMON_MSG_FILE_REQUEST_H
#define DAEMON_MSG_FILE_REQUEST_H

#include "daemon/msg/msg.h"
#include "daemon/msg/msg_unwind.h"

enum file_request_verdict {
	FILE_REQUEST_VALID, /* the broker looks for the file */
	/*
	 * No file has this name or range. unwind does not send the question;
	 * the broker answers one that arrives with EINVAL, and counts it.
	 */
	FILE_REQUEST_REFUSED,
	/* unwind has no such question: the sender is not unwind any more */
	FILE_REQUEST_VIOLATION,
};

/* Reads kind, and of the others what that kind has. */
enum file_request_verdict file_request_check(const struct msg_file_request *request);

#endif
