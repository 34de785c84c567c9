/*
 * Checks messages from the daemon's socket against lib/client/protocol.h. Pure, since any user
 * of the machine may send any bytes.
 */
#ifndef DAEMON_BROKER_CONTROL_CONTROL_MESSAGE_H
#define DAEMON_BROKER_CONTROL_CONTROL_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/client/protocol.h"

enum control_kind {
	CONTROL_BAD,   /* ends the connection */
	CONTROL_HELLO, /* *ret.hello */
	CONTROL_ASKS,  /* *ret.request */
	CONTROL_LATER, /* of a later version: *ret.h alone is known */
};

union control_message {
	struct protocol_header h;
	struct protocol_hello hello;
	struct protocol_request request;
};

/*
 * bytes: a datagram of size, 0 included; is_first: of its connection. What it
 * is, copied to *ret: of a request, nothing stands behind its name's NUL, and
 * what it does not take is not in it.
 */
enum control_kind control_message_check(const void *bytes, size_t size, bool is_first,
					union control_message *ret);

#endif
