/*
 * The link from capture to unwind: a ring with records, and a socket beside it.
 *
 * capture writes records into the ring and says by MSG_RING_HEAD how far they
 * reach. unwind reads them and gives the space back by MSG_RING_CREDIT, called a
 * credit. A credit wakes capture, so unwind sends one only when it returns much
 * space, or when nothing is left to read. Stack hints (daemon/unwind/hints.h) go to
 * capture on the same socket, as MSG_STACK_HINT, and so do lists of watched parts of memory, as
 * MSG_WATCH.
 *
 * A link is opened when the broker hands over a ring (MSG_RING_OPEN). When capture
 * ends, its side of the socket is closed, and the caller closes the link. The broker
 * sends another MSG_RING_OPEN when a new capture runs.
 *
 * Functions that return int return 0 unless their comment says otherwise, or a
 * negative errno. After an error the caller ends the process, because the ring cannot
 * be trusted any more.
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
	uint64_t credit_read; /* ring.read when the last credit was due */
	bool owes_credit;     /* the socket was full: send a credit when it is writable */
};

/*
 * Handles a record of size bytes, which stays in the ring until the function returns. Returns
 * 0 or a negative errno.
 */
typedef int (*capture_link_record_fn)(const struct record *record, size_t size);

/*
 * Opens a closed link. m is MSG_RING_OPEN with two descriptors: the ring's memory and the
 * socket. On success the link owns the socket. All other descriptors stay in m, on an error
 * the socket as well; the caller closes them with ipc_close_fds(). Returns 0, or the error of
 * ring_reader_init() or fcntl(2).
 */
must_check int capture_link_open(struct capture_link *l, struct ipc_message *m);

/*
 * Closes the socket. Records that have not been read are lost. The ring stays mapped until the
 * next capture_link_open().
 */
void capture_link_close(struct capture_link *l);

/*
 * Receives one MSG_RING_HEAD, or none if no message waits, and passes the new records to fn,
 * oldest first. Does not block. all: receives every message that waits, which costs one more
 * system call. Sends credits that become due.
 *
 * Returns 1; 0 if capture has closed its side of the socket, after fn got all of its records;
 * the error of fn; -EPROTO if a message or a record is malformed; or the error of
 * ipc_recv() or capture_link_give_credit().
 */
must_check int capture_link_read(struct capture_link *l, bool all, capture_link_record_fn fn);

/*
 * Returns true if a credit is due, and starts counting anew. at_end: no record is left in the
 * ring. If at_end, a credit is due when 1/128 of the ring has been read since the last one,
 * otherwise when 1/8 has. Other files call it in tests only.
 */
bool capture_link_credit_is_due(struct capture_link *l, bool at_end);

/*
 * Sends a credit for all records that have been read. If the socket is full, sets owes_credit:
 * the caller calls this function again when the socket is writable. Returns 0 also if capture
 * has ended or the link is closed.
 */
must_check int capture_link_give_credit(struct capture_link *l);

/*
 * Sends MSG_STACK_HINT or MSG_WATCH. Returns -EAGAIN if the socket is full. (A hint may be dropped
 * then: a sample of the thread that is taken later causes the same hint.) Returns 0 also if capture
 * has ended or the link is closed.
 */
must_check int capture_link_send(struct capture_link *l, const void *message, size_t size);

#endif
