/*
 * The rule of MSG_WANT, the question that unwind asks the broker. unwind
 * applies the rule before it sends a question, the broker when one arrives.
 */
#ifndef DAEMON_MSG_WANT_H
#define DAEMON_MSG_WANT_H

#include "daemon/msg/msg.h"

enum want_verdict {
	WANT_GOOD, /* the broker looks for the file */
	/*
	 * No file has this name or range. unwind does not send the question;
	 * the broker answers one that arrives with EINVAL, and counts it.
	 */
	WANT_REFUSED,
	/* unwind has no such question: the sender is not unwind any more */
	WANT_BROKEN,
};

/* Reads kind, and of the others what that kind has. */
enum want_verdict want_check(const struct msg_want *want);

#endif
