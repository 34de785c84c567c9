/*
 * An envelope that ship was handed, until the broker is told what became of it.
 */
#ifndef DAEMON_SHIP_SENDING_H
#define DAEMON_SHIP_SENDING_H

#include <stdbool.h>

#include "daemon/msg/sizes.h"
#include "lib/base/ipc.h"
#include "lib/ship/package.h"

/* From malloc; the descriptors of payload and anchor are its own. */
struct sending {
	struct package package; /* its platform is the one below */
	uint64_t seq;		/* the broker's number for it */
	bool was_tried;		/* by a request that was not answered */
	char chunk_id[MSG_ID_SIZE];
	char platform[MSG_TEXT_MAX];
};

/*
 * Of the message MSG_ENVELOPE, with its descriptors: takes those of the payload
 * and the anchor, and leaves those of the file. Returns 0, -EPROTO if it is no
 * such message, or -ENOMEM.
 */
must_check int sending_new(struct ipc_message *message, struct sending **ret);

void sending_free(struct sending *s);

#endif
