/*
 * unwind's end of the link to capture: a ring in shared memory (lib/base/ring.h), from which unwind
 * reads records, and a socket for messages in both directions.
 *
 * capture writes records into the ring, and says by MSG_RING_HEAD how far they reach. unwind reads
 * the records and gives their space back by MSG_RING_CREDIT, called a credit. A credit wakes
 * capture, so unwind sends one only when it returns much space. On the same socket unwind sends
 * stack hints, requests for registers (daemon/unwind/hints.h), and lists of memory to watch.
 *
 * unwind has one link, which it opens when the broker hands over a ring (MSG_RING_OPEN). When
 * capture ends, the kernel closes capture's side of the socket, and unwind closes the link. The
 * broker sends another MSG_RING_OPEN when a new capture runs.
 *
 * After an error the caller ends the unwind process, because the ring cannot be trusted any more.
 * Exception: -EAGAIN of capture_link_send().
 */
#ifndef DAEMON_UNWIND_CAPTURE_LINK_H
#define DAEMON_UNWIND_CAPTURE_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/msg/msg_capture.h"
#include "lib/base/ipc.h"
#include "lib/base/ring.h"
#include "lib/capture/sample.h"

/* Before the first capture_link_open() the caller sets fd to -1 and all other members to 0. */
struct capture_link {
	struct ring_reader ring;
	int fd;		      /* the socket; -1: not open */
	uint64_t credit_read; /* value of ring.read when a credit was last due */
	bool owes_credit;     /* the socket was full: send a credit when it is writable */
};

/*
 * Handles a record of size bytes, at least sizeof(*record). The record is in the ring, where
 * capture can change it, and is valid until the function returns. Returns 0 or a negative errno.
 */
typedef int (*capture_link_record_fn)(const struct record *record, size_t size);

/*
 * Opens a closed link. m is MSG_RING_OPEN with two descriptors: the ring's memory and the socket.
 * On success the link owns the socket. The other descriptor stays in m, on an error both stay; the
 * caller closes them with ipc_close_fds(). Returns 0, or the error of ring_reader_init() or
 * fcntl(2).
 */
must_check int capture_link_open(struct capture_link *l, struct ipc_message *m);

/*
 * Closes the socket. Records that have not been read are lost. The ring stays mapped until the
 * next capture_link_open(). Does nothing if the link is closed.
 */
void capture_link_close(struct capture_link *l);

/*
 * Receives at most one MSG_RING_HEAD that waits on the socket. Then passes the new records to fn,
 * oldest first, and sends the credits that become due. Does not block. The link must be open.
 *
 * With all, receives every MSG_RING_HEAD that waits, and passes all records that capture has
 * written, announced or not. Use it when these must not be missed, such as before a session or a
 * recording is closed. It costs one more system call.
 *
 * Returns 1; 0 if capture has closed its side of the socket, after all records that capture has
 * written were passed to fn, announced or not; the error of fn; -EPROTO if a message or a record is
 * malformed; or the error of ipc_recv() or capture_link_give_credit().
 */
must_check int capture_link_read(struct capture_link *l, bool all, capture_link_record_fn fn);

/*
 * Returns true if a credit is due: 1/8 of the ring has been read since the function last returned
 * true. at_end: unwind has read all records that capture has announced; then 1/128 is enough. Only
 * capture_link.c and tests call it.
 */
bool capture_link_credit_is_due(struct capture_link *l, bool at_end);

/*
 * Sends a credit for all records that have been read. If the socket is full, sets owes_credit and
 * returns 0: the caller calls this function again when the socket is writable. Returns 0 also if
 * capture has ended or the link is closed; otherwise the error of ipc_send().
 */
must_check int capture_link_give_credit(struct capture_link *l);

/*
 * Sends a message of size bytes: MSG_STACK_HINT, MSG_WANT_REGISTERS or MSG_WATCH. Returns 0, also
 * if capture has ended or the link is closed; -EAGAIN if the socket is full; or another error of
 * ipc_send(). After -EAGAIN the caller may drop a hint: a later sample of the thread causes it
 * again.
 */
must_check int capture_link_send(struct capture_link *l, const void *message, size_t size);

#endif
