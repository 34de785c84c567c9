/*
 * When the reader of a ring gives its writer back the room that it has read:
 * each credit is a message, and wakes the writer.
 */
#ifndef DAEMON_UNWIND_CREDIT_H
#define DAEMON_UNWIND_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/ring.h"

/* All 0 for a new ring. */
struct credit {
	uint64_t given; /* the reader's read, when the writer was told */
	/* The writer could not be told: it is to be when that can be sent. */
	bool is_owed;
};

/*
 * Tells the writer, at the other end of link_fd, of reader->tail. Returns 0,
 * also if the link is full (is_owed), or the error of ipc_send.
 */
must_check int credit_give(struct credit *c, const struct ring_reader *reader, int link_fd);

/*
 * True if reader->tail is to be given now, and taken for given. at_end: all is
 * read that was there.
 */
bool credit_is_due(struct credit *c, const struct ring_reader *reader, bool at_end);

#endif
