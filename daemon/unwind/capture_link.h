/*
 * The link from capture to unwind: a ring with records, and a socket beside it.
 *
 * capture writes records into the ring and says by MSG_RING_HEAD how far they
 * reach. unwind reads them and gives the space back by MSG_RING_CREDIT, called a
 * credit. A credit wakes capture, so a credit is sent only when it is worth that.
 * Stack hints (MSG_STACK_HINT) take the same socket.
 *
 * A link is opened when the broker hands over a ring (MSG_RING_OPEN). When
 * capture ends it closes its side of the socket; the broker opens a new link
 * later. Functions that return int return 0 or a negative errno. An error other
 * than those named below means that capture broke the protocol, and that the ring
 * cannot be trusted any more.
 */
#ifndef DAEMON_UNWIND_CAPTURE_LINK_H
#define DAEMON_UNWIND_CAPTURE_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/msg/msg_capture.h"
#include "lib/base/ipc.h"
#include "lib/base/ring.h"
#include "lib/capture/sample.h"

/* A closed link has fd -1, and all else 0 at first. */
struct capture_link {
	struct ring_reader ring;
	int fd;		      /* the socket; -1: not open */
	uint64_t credit_read; /* ring.read when the last credit was due */
	bool owes_credit;     /* the socket was full: send when it can be written */
};

/* Takes a record of size bytes; it lies in the ring until the function returns. */
typedef int (*capture_link_record_fn)(const struct record *record, size_t size);

/*
 * Opens the link, which is closed. m is MSG_RING_OPEN, whose descriptors are
 * the ring's memory and the socket; the link takes the socket. Returns 0, or the
 * error of ring_reader_init() or fcntl(2).
 */
must_check int capture_link_open(struct capture_link *l, struct ipc_message *m);

/* Closes the socket. Records of the ring that have not been read are lost. */
void capture_link_close(struct capture_link *l);

/*
 * Receives one MSG_RING_HEAD and hands the new records to fn, oldest first. all:
 * receives every message that waits, which costs one more system call. Returns 1,
 * 0 if capture has closed its side (all its records have been read), an error of
 * fn, or another negative errno.
 */
must_check int capture_link_read(struct capture_link *l, bool all, capture_link_record_fn fn);

/*
 * Returns true if a credit is due, and counts it as given. at_end: the reader has
 * read all that is there. A credit is due for 1/128 of the ring at the end, and
 * for 1/8 of it before.
 */
bool capture_link_credit_is_due(struct capture_link *l, bool at_end);

/*
 * Sends a credit for all that has been read. If the socket is full, the credit
 * stays owed (owes_credit). Returns 0 also if capture has ended.
 */
must_check int capture_link_give_credit(struct capture_link *l);

/*
 * Sends a stack hint. Drops the hint if the socket is full: a later sample of the
 * thread asks for it again. Returns 0 also if capture has ended.
 */
must_check int capture_link_send_hint(struct capture_link *l, const struct msg_stack_hint *hint);

#endif
