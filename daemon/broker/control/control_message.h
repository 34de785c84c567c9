/*
 * Checks messages from the daemon's socket against lib/client/protocol.h, because any user of the
 * machine can send any bytes. control.h calls the function for each message. It has no side
 * effects.
 */
#ifndef DAEMON_BROKER_CONTROL_CONTROL_MESSAGE_H
#define DAEMON_BROKER_CONTROL_CONTROL_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/client/protocol.h"

enum control_kind {
	CONTROL_BAD,	 /* breaks the protocol: the connection has to end */
	CONTROL_HELLO,	 /* a HELLO: ret->hello */
	CONTROL_REQUEST, /* a request: ret->request */
	CONTROL_NEWER,	 /* a type of a newer protocol version: only ret->h is set */
};

union control_message {
	struct protocol_header h;
	struct protocol_hello hello;
	struct protocol_request request;
};

/*
 * Checks one datagram of size bytes (may be 0) and copies it to *ret. After CONTROL_BAD *ret stays
 * as it was. is_first: the message is the first of its connection. The first one has to be a HELLO,
 * and no other may be one.
 *
 * A request is CONTROL_BAD if it has a pid or a name that its type does not take, or lacks one that
 * its type needs. In the copy of a request the bytes of name after its NUL are 0. A
 * PROTOCOL_RELEASE has seconds in place of name: the bytes after seconds, up to the end of the
 * message, are 0.
 */
enum control_kind control_message_check(const void *bytes, size_t size, bool is_first,
					union control_message *ret);

#endif
